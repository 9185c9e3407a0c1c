"""`nearcast certificate`: what it writes lets the SDK verify a real server, and nobody else does."""

from __future__ import annotations

from ipaddress import ip_address

import pytest
from click.testing import CliRunner
from cryptography import x509

import nearcast
from cli.app import app
from nearcast import Tls, UnavailableError
from server.settings import load_settings
from tests.support.servers import serving


def made(folder, *hosts, paths=("chain.pem", "key.pem")):
    files = "--out", str(folder / paths[0]), "--key", str(folder / paths[1])
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


@pytest.mark.parametrize("paths", [("same.pem", "same.pem"), ("same.pem", "here/../same.pem")])
def test_two_files_of_one_path_are_refused(tmp_path, paths):
    (tmp_path / "here").mkdir()
    result = made(tmp_path, "localhost", paths=paths)
    assert result.exit_code == 2
    assert f"--key is {tmp_path / paths[1]}, must be another file than --out" in result.output
    assert not (tmp_path / "same.pem").exists()


@pytest.mark.parametrize("paths", [("chain.pem", "nodir/key.pem"), ("nodir/chain.pem", "key.pem")])
def test_a_file_that_cannot_be_written_leaves_no_other_behind(tmp_path, paths):
    result = made(tmp_path, "localhost", paths=paths)
    assert result.exit_code == 1
    assert "No such file or directory" in result.output
    assert not list(tmp_path.iterdir())


def test_an_ipv6_address_may_have_the_brackets_of_a_url(tmp_path):
    assert made(tmp_path, "[::1]", "city.example.org").exit_code == 0
    certificate = x509.load_pem_x509_certificate((tmp_path / "chain.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.IPAddress) == [ip_address("::1")]
    assert names.get_values_for_type(x509.DNSName) == ["city.example.org"]


@pytest.mark.parametrize(
    "host", ["", "two words", "x" * 65, "häuser.example", "http://h:8", "h:8", "[h]", "[::1]:8"]
)
def test_a_host_that_no_certificate_can_have_is_named(tmp_path, host):
    result = made(tmp_path, host)
    assert result.exit_code == 2
    assert repr(host) in result.output
    assert not (tmp_path / "chain.pem").exists()
