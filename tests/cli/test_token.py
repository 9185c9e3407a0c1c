"""`nearcast token`, and what `nearcast serve` says of keys, certificates and hosts that cannot be."""

from __future__ import annotations

import json
import signal
import stat

import pytest
from click.testing import CliRunner

import nearcast
from cli.app import app
from identity.keys import read_keys
from identity.principal import Role
from identity.tokens import TokenPolicy, TokenVerifier
from identity.watched_file import WatchedFiles
from tests.cli.test_serve import AREA, Process, refused
from tests.support.identity import Authority, keys_in


def issued(folder, *arguments):
    files = [f"--key={folder / 'key.pem'}", f"--jwks={folder / 'keys.json'}"]
    done = CliRunner().invoke(app, ["token", *arguments, *files])
    assert done.exit_code == 0, done.output
    return done.stdout.strip()


@pytest.mark.processes
async def test_a_token_opens_a_server_that_knows_its_key(tmp_path):
    operator = issued(tmp_path, "ops", "--role=operator")
    assert stat.S_IMODE((tmp_path / "key.pem").stat().st_mode) == 0o600
    assert "d" not in json.loads((tmp_path / "keys.json").read_text())["keys"][0]
    device = issued(tmp_path, "device", "--role", "device", "--ttl-s", "60")
    foreign = issued(tmp_path, "device", "--role=device", "--tenant=acme")
    process = Process(AREA, "--port=0", "--store=:memory:", f"--jwks={tmp_path / 'keys.json'}")
    async with nearcast.connect(process.target, token=operator) as client:
        assert (await client.status()).gauges["objects"] == 0
    async with nearcast.connect(process.target, token=device) as client:
        await client.attach("device", lon=14.5, lat=35.5)
    async with nearcast.connect(process.target, token=foreign) as client:
        with pytest.raises(nearcast.RefusedError, match=r"token\.tenant"):
            await client.attach("device", lon=14.5, lat=35.5)
    assert process.signal(signal.SIGTERM) == 0


def test_a_token_in_a_file_is_for_its_owner_alone_and_replaces_nothing(tmp_path):
    out, key = tmp_path / "ops.token", f"--key={tmp_path / 'key.pem'}"
    command = ["token", "ops", "--role=operator", key, f"--jwks={tmp_path / 'keys.json'}", f"--out={out}"]
    done = CliRunner().invoke(app, command)
    assert (done.exit_code, done.stdout) == (0, "")
    assert out.stat().st_mode & 0o777 == 0o600
    assert out.read_text().count(".") == 2
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 1
    assert f"--out {out} exists, must be absent: remove it first" in done.output


def made(folder, key, jwks):
    """Run the command with a key and a key set of a folder."""
    files = [f"--key={folder / key}", f"--jwks={folder / jwks}"]
    return CliRunner().invoke(app, ["token", "ops", "--role=operator", *files])


def test_a_new_key_is_added_to_the_keys_of_a_set(tmp_path):
    keys = tmp_path / "keys.json"
    first, second = (made(tmp_path, name, "keys.json") for name in ("first.pem", "second.pem"))
    assert f"made {tmp_path / 'second.pem'}, added it to {keys} for nearcast serve" in second.stderr
    verifier = TokenVerifier(WatchedFiles([keys], lambda: read_keys(keys)), TokenPolicy("nearcast"), {})
    for done in (first, second):
        assert verifier.principal(done.stdout.strip()).roles == {Role.OPERATOR}


def test_a_set_that_exists_does_not_get_an_old_key_again(tmp_path):
    made(tmp_path, "first.pem", "keys.json")
    keys = keys_in(tmp_path).read_bytes()
    assert made(tmp_path, "first.pem", "keys.json").exit_code == 0
    assert (tmp_path / "keys.json").read_bytes() == keys


def test_a_key_gets_a_set_if_there_is_none(tmp_path):
    made(tmp_path, "key.pem", "keys.json")
    done = made(tmp_path, "key.pem", "others.json")
    assert f"made {tmp_path / 'others.json'} for nearcast serve" in done.stderr
    assert (tmp_path / "others.json").read_bytes() == (tmp_path / "keys.json").read_bytes()


def test_a_key_without_a_set_is_not_left_behind(tmp_path):
    done = made(tmp_path, "key.pem", "nodir/keys.json")
    assert done.exit_code == 1
    assert "keys.json cannot be written: No such file or directory" in done.stderr
    (tmp_path / "text.json").write_text("mine", encoding="utf-8")
    done = made(tmp_path, "key.pem", "text.json")
    assert done.exit_code == 1
    assert "text.json is not a JSON Web Key Set" in done.stderr
    assert [(one.name, one.read_text()) for one in tmp_path.iterdir()] == [("text.json", "mine")]


def test_a_role_that_is_none(tmp_path):
    done = CliRunner().invoke(app, ["token", "x", "--role=chef", f"--key={tmp_path / 'key.pem'}"])
    assert done.exit_code == 2
    assert "'chef' is not one of 'device', 'gateway', 'publisher', 'operator'" in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("name", ["", "a\nb", "x" * 129])
def test_a_name_that_no_server_takes(tmp_path, name):
    done = CliRunner().invoke(app, ["token", name, "--role=device", f"--key={tmp_path / 'key.pem'}"])
    assert done.exit_code == 2
    assert "must be 1 to 128 printable characters" in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("option", "error"),
    [
        ("--ttl-s=inf", "inf is not in the range 1.0<=x<=1000000000.0"),
        ("--ttl-s=nan", "'nan' is not a number"),
        ("--ttl-s=1e300", "1e+300 is not in the range 1.0<=x<=1000000000.0"),
        ("--tenant=a b", "'a b' must have 1 to 64 printable characters without blanks"),
    ],
)
def test_a_claim_that_no_server_takes(tmp_path, option, error):
    files = (f"--key={tmp_path / 'key.pem'}", f"--jwks={tmp_path / 'keys.json'}")
    done = CliRunner().invoke(app, ["token", "x", "--role=device", option, *files])
    assert done.exit_code == 2
    assert error in done.output
    assert not list(tmp_path.iterdir())


@pytest.mark.processes
def test_errors_of_serve_for_unusable_files(tmp_path):
    keys = keys_in(tmp_path)
    keys.write_text("nothing", encoding="utf-8")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"
    chain.write_bytes(Authority().issue(begin_days=-9, end_days=-1)[0])
    key.write_bytes(Authority().issue()[1])
    store = tmp_path / "store.db"
    begin = ("serve", AREA, "--port=0", f"--store={store}")
    tls = (f"--tls-certificate={chain}", f"--tls-key={key}")
    for flags, message in (
        ((f"--jwks={keys}",), "keys.json is not a JSON Web Key Set"),
        (tls, "key.pem does not belong to the certificate"),
    ):
        assert message in refused(*begin, *flags)
    for flags, message in (
        (("--host=0.0.0.0",), "must be of this machine without TLS and tokens"),
        (("--tenant=acme",), "--tenant needs --jwks"),
        ((f"--tls-client-roots={chain}",), "--tls-client-roots needs --tls-certificate and --tls-key"),
    ):
        assert message in refused(*begin, *flags, status=2)
    assert not store.exists()
