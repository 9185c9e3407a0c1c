"""`nearcast certificate`: what it writes lets the SDK verify a real server, and nobody else does."""

from __future__ import annotations

import pytest
from click.testing import CliRunner

import nearcast
from cli.app import app
from nearcast import Tls, UnavailableError
from server.settings import load_settings
from tests.support.servers import serving


def made(folder, *hosts):
    files = "--out", str(folder / "chain.pem"), "--key", str(folder / "key.pem")
    return CliRunner().invoke(app, ["certificate", *hosts, *files])


async def test_a_server_with_it_is_verified_by_it(tmp_path):
    assert made(tmp_path, "localhost", "127.0.0.1").exit_code == 0
    assert (tmp_path / "key.pem").stat().st_mode & 0o077 == 0
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    settings = load_settings(
        {
            "area": "14.18,35.80,14.58,36.09",
            "store": ":memory:",
            "port": 0,
            "tls_certificate": chain,
            "tls_key": key,
        }
    )
    async with serving(settings) as server:
        tls = Tls(root_certificates=chain.read_bytes())
        async with nearcast.connect(f"localhost:{server.port}", tls=tls) as client:
            assert (await client.status()).state is nearcast.ServerState.SERVING
        other = tmp_path / "other"
        other.mkdir()
        assert made(other, "localhost").exit_code == 0
        wrong = Tls(root_certificates=(other / "chain.pem").read_bytes())
        async with nearcast.connect(f"localhost:{server.port}", tls=wrong) as client:
            with pytest.raises(UnavailableError):
                await client.status()


def test_files_that_exist_are_kept(tmp_path):
    (tmp_path / "key.pem").write_text("mine")
    result = made(tmp_path, "localhost")
    assert result.exit_code == 1
    assert "key.pem exists" in result.output
    assert (tmp_path / "key.pem").read_text() == "mine"
    assert not (tmp_path / "chain.pem").exists()


@pytest.mark.parametrize("host", ["", "two words", "x" * 65, "häuser.example"])
def test_a_host_that_no_certificate_can_have_is_named(tmp_path, host):
    result = made(tmp_path, host)
    assert result.exit_code == 1
    assert repr(host) in result.output
    assert not (tmp_path / "chain.pem").exists()
