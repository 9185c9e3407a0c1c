import pytest

import nearcast
from cli.secure_demo import secured
from nearcast import ServerState
from server.settings import load_settings
from tests.support.servers import serving


async def test_only_clients_with_the_credentials_of_a_demo_are_accepted(tmp_path):
    credentials = secured(tmp_path / "credentials")
    given = dict(flag.removeprefix("--").split("=", 1) for flag in credentials.flags)
    settings = {name.replace("-", "_"): value for name, value in given.items()}
    store = str(tmp_path / "city.db")
    settings |= {"area": "14,35,15,36", "store": store, "port": 0, "virtual_time": "true"}
    async with serving(load_settings(settings)) as server:
        target = f"127.0.0.1:{server.port}"
        async with nearcast.connect(target, token=credentials.token, tls=credentials.tls) as client:
            assert (await client.status()).state is ServerState.SERVING
        async with nearcast.connect(target, tls=credentials.tls) as client:
            with pytest.raises(nearcast.RefusedError):
                await client.status()
    assert (tmp_path / "credentials" / "key.pem").stat().st_mode & 0o077 == 0
