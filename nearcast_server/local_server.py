"""A real server for the tests of an app: in this process, or in a process beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from nearcast_server.errors import StartError, requiring
from nearcast_server.server_process import ServerProcess

if TYPE_CHECKING:
    from server.main import Server


def serve(
    area: Sequence[float],
    *,
    store: str | Path = ":memory:",
    port: int = 0,
    virtual_time: bool = False,
    **settings: Any,  # noqa: ANN401 - the fields of ServerSettings
) -> LocalServer:
    """Return a real server on this machine, which runs during a ``with`` block.

    * ``with serve(...) as server`` starts it in a process beside this one. The process ends with the
      block, and also if this process is killed.
    * ``async with serve(...) as server`` starts it in this process, on the event loop of the caller. It
      starts faster. Blocking calls in the block block the server as well.

    The first start on a machine compiles the kernels, which takes about a minute; `nearcast compile` does
    this in advance.

    Parameters
    ----------
    area
        Service area in degrees: west, south, east, north.
    store
        Database file, which is created if it does not exist; ``":memory:"`` keeps nothing.
    port
        Port to listen on; 0 for a free one.
    virtual_time
        Whether time stands still until a client calls `nearcast.Client.advance_clock`.
    **settings
        Other settings of `nearcast serve`, with underscores: ``tokens=["secret"]``,
        ``lease_ms=10_000``. Settings that are not given are taken from the environment
        (``NEARCAST_...``), as those of every server. Less than warnings is not logged, unless
        ``log_level`` is given.

    Returns
    -------
    LocalServer
        The server; it starts with the block.

    Examples
    --------
    A fixture for tests with pytest::

        @pytest.fixture
        def server():
            with nearcast_server.serve((14.18, 35.80, 14.58, 36.09), virtual_time=True) as server:
                yield server

    The same within an event loop::

        async with nearcast_server.serve((14.18, 35.80, 14.58, 36.09)) as server:
            async with nearcast.connect(server.address) as client:
                ...
    """
    given = {"area": list(area), "store": str(store), "port": port, "virtual_time": virtual_time}
    return LocalServer({"create": True, "log_level": "WARNING", **given, **settings})


class LocalServer:
    """A server of the tests of an app. `serve` creates it; it runs during a ``with`` block.

    Entering the block raises `StartError` if the server cannot be started, and `MissingPackageError` if
    the extra ``server`` is not installed.
    """

    def __init__(self, settings: dict[str, Any]) -> None:
        self._settings = settings
        self._process: ServerProcess | None = None
        self._server: Server | None = None

    def __repr__(self) -> str:
        where = self.address if self._process or self._server else "not running"
        return f"<nearcast_server.LocalServer {where}>"

    @property
    def port(self) -> int:
        """The open port.

        Raises
        ------
        StartError
            If the server is not running.
        """
        running = self._process or self._server
        if running is None:
            raise StartError("the server runs within its block only: with nearcast_server.serve(...)")
        return running.port

    @property
    def address(self) -> str:
        """The address for `nearcast.connect`: host and port."""
        return f"{self._settings.get('host', '127.0.0.1')}:{self.port}"

    def __enter__(self) -> Self:
        self._require_stopped()
        self._process = ServerProcess(self._settings)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.stop()

    async def __aenter__(self) -> Self:
        self._require_stopped()
        with requiring("server"):
            from nearcast_server.starting import started  # noqa: PLC0415
        self._server = await started(self._settings)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.stop()

    def _require_stopped(self) -> None:
        if self._process is not None or self._server is not None:
            raise StartError(f"the server is running, on {self.address}")
