"""The server, the indexes and the simulator of nearcast as a library.

Three functions, which are the same in a checkout and when installed (`simulate` with the extra
``simulator``):

* `serve` starts a real server for the tests of an app;
* `make_index` makes an index over arrays by its name;
* `simulate` makes a city, movement and a workload as tables.

Importing this package makes their packages importable, such as `index.contracts`, and imports none of
them: numba, Spark and the rest are imported on the first call.

Examples
--------
::

    import nearcast.sync
    import nearcast_server

    with nearcast_server.serve((14.18, 35.80, 14.58, 36.09)) as server:
        with nearcast.sync.connect(server.address) as client:
            print(client.status().state)
"""

from nearcast_server.errors import MissingPackageError, StartError
from nearcast_server.indexes import index_names, make_index
from nearcast_server.local_server import LocalServer, serve
from nearcast_server.packages import import_last
from nearcast_server.simulations import open_simulation, simulate

__all__ = [
    "LocalServer",
    "MissingPackageError",
    "StartError",
    "index_names",
    "make_index",
    "open_simulation",
    "serve",
    "simulate",
]

import_last()
