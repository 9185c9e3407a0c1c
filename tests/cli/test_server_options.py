"""How commands name a server and get into it: one way for all, with errors that say what may be wrong."""

from __future__ import annotations

import os
import re
import signal
import subprocess

import click
import pytest
from click.testing import CliRunner

from cli.app import app
from cli.server_address import PORT, ServerAddress
from nearcast import address
from safe_region.scoring.idf import IdfTable
from tests.cli.test_serve import AREA, COMMAND, ROOT, Process
from tests.support.identity import Authority, keys_in, token

ASKING = (
    ("status",),
    ("top",),
    ("inspect", "device"),
    ("inspect", "subscription"),
    ("inspect", "object"),
    ("idf", "load"),
    ("replay",),
    ("retract",),
)
"""Commands that ask a server."""


def run(*arguments, **environment):
    variables = {name: one for name, one in os.environ.items() if not name.startswith("NEARCAST_")}
    done = subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=ROOT,
        env={**variables, **environment},
    )
    return done.returncode, done.stdout, done.stderr


def invoke(*arguments):
    """The same in this process, which imports nothing again."""
    done = CliRunner().invoke(app, arguments)
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    """A folder with a certificate for localhost, its root, keys, and a token of an operator."""
    folder = tmp_path_factory.mktemp("files")
    authority = Authority()
    chain, key = authority.issue()
    (folder / "chain.pem").write_bytes(chain)
    (folder / "key.pem").write_bytes(key)
    (folder / "roots.pem").write_bytes(authority.pem)
    (folder / "others.pem").write_bytes(Authority("others").pem)
    (folder / "token").write_text(f"{token('ops', 'operator')}\n")
    keys_in(folder)
    return folder


@pytest.fixture(scope="module")
def secured(files):
    """The port of a server with TLS and tokens."""
    flags = (f"--tls-certificate={files / 'chain.pem'}", f"--tls-key={files / 'key.pem'}")
    process = Process(AREA, "--port=0", "--store=:memory:", *flags, f"--jwks={files / 'keys.json'}")
    yield process.target.rpartition(":")[2]
    assert process.signal(signal.SIGTERM) == 0


@pytest.fixture(scope="module")
def plain():
    """A server without TLS."""
    process = Process(AREA, "--port=0", "--store=:memory:")
    yield process
    assert process.signal(signal.SIGTERM) == 0


# -- where it is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("localhost", "localhost:7433"),
        ("example.org:80", "example.org:80"),
        ("192.0.2.1", "192.0.2.1:7433"),
        ("::1", "[::1]:7433"),
        ("[::1]", "[::1]:7433"),
        ("[2001:db8::1]:80", "[2001:db8::1]:80"),
        ("h1, [::1]:80", "h1:7433,[::1]:80"),
    ],
)
def test_an_address_has_the_usual_port_unless_it_has_another(text, address):
    assert ServerAddress().convert(text, None, None) == address


def test_help_names_the_port_that_is_taken():
    assert PORT == address.PORT


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://localhost:7433", "must be HOST[:PORT] without http://, such as localhost:7433"),
        ("grpcs://a/b", "must be HOST[:PORT] without grpcs://, such as a:"),
        ("localhost:x", "'localhost:x' must be HOST[:PORT] with a port from 1 to 65535, and not 'x'"),
        ("localhost:0", "'localhost:0' must be HOST[:PORT] with a port from 1 to 65535, and not '0'"),
        ("localhost:65536", "with a port from 1 to 65535, and not '65536'"),
        ("localhost:", "with a port from 1 to 65535, and not ''"),
        ("", "must be HOST[:PORT], such as localhost or [::1]:7433"),
        (":7433", "must be HOST[:PORT]"),
        ("a b", "must be HOST[:PORT]"),
        ("[localhost]:7433", "must be HOST[:PORT]"),
        ("[::1]7433", "must be HOST[:PORT]"),
        ("::1::2", "must be HOST[:PORT]"),
        ("h1,", "'' must be HOST[:PORT]"),
        ("h1,http://h2", "must be HOST[:PORT] without http://"),
    ],
)
def test_invalid_addresses(text, message):
    with pytest.raises(click.BadParameter) as found:
        ServerAddress().convert(text, None, None)
    assert message in found.value.message


@pytest.mark.parametrize("path", ASKING, ids=" ".join)
def test_all_commands_name_it_in_the_same_way(path):
    command = app
    for name in path:
        command = command.commands[name]
    options = {one.name: one for one in command.params if isinstance(one, click.Option)}
    assert (options["server"].default, options["server"].opts) == ("localhost:7433", ["--server"])
    done = CliRunner().invoke(app, [*path, "--help"], terminal_width=200)
    for name in ("server", "token", "token-file", "tls", "tls-roots", "tls-server-name"):
        assert re.search(rf"--{name}[ ,]", done.output)
        assert f"env var: NEARCAST_{name.replace('-', '_').upper()}" in done.output


def what(path, folder):
    """The arguments of a command that asks a server."""
    table = folder / "idf.json"
    table.write_text(IdfTable({"a": 2.0}).as_json())
    if path[0] == "forget":
        return ["d", "--yes"]
    return {
        "device": ["d"],
        "subscription": ["d", "1"],
        "object": ["1"],
        "load": [str(table)],
        "replay": [str(folder)],
        "retract": ["1", "--yes"],
    }.get(path[-1], [])


@pytest.mark.parametrize("path", [*ASKING, ("forget", "device")], ids=" ".join)
def test_no_command_sends_a_token_in_the_clear_to_another_machine(path, tmp_path):
    (tmp_path / "token").write_text("geheim")
    words = [*path, *what(path, tmp_path), "--server", "example.org"]
    for more, variables in (
        (["--token", "geheim"], {}),
        (["--token-file", str(tmp_path / "token")], {}),
        ([], {"NEARCAST_TOKEN": "geheim"}),
    ):
        done = CliRunner().invoke(app, [*words, *more], env=variables)
        assert done.exit_code == 2, done.output
        assert "--server is example.org:7433, must be of this machine without TLS" in done.output
        assert "geheim" not in done.output


@pytest.mark.parametrize("path", [*ASKING, ("forget", "device")], ids=" ".join)
def test_a_token_is_no_name_of_a_file(path, tmp_path):
    (tmp_path / "token").write_text("geheim")
    words = [*path, *what(path, tmp_path), "--token", str(tmp_path / "token")]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 2, done.output
    assert "the name of a file, must be a token; give --token-file to read it" in done.output


@pytest.mark.processes
def test_the_roots_may_have_their_former_name(files, secured):
    server, file = f"--server=localhost:{secured}", f"--token-file={files / 'token'}"
    roots = str(files / "roots.pem")
    assert run("status", server, file, f"--tls-root={roots}")[0] == 0
    assert run("status", server, file, NEARCAST_TLS_ROOT=roots)[0] == 0
    assert run("status", server, file, NEARCAST_TLS_ROOTS=roots)[0] == 0


@pytest.mark.processes
def test_a_token_may_be_read_from_standard_input(files, secured):
    server, root = f"--server=localhost:{secured}", f"--tls-roots={files / 'roots.pem'}"
    command = [*COMMAND, "status", server, root, "--token", "-"]
    text = (files / "token").read_text()
    for given, status in ((text, 0), ("wrong\n", 1)):
        done = subprocess.run(command, input=given, capture_output=True, text=True, check=False, cwd=ROOT)
        assert done.returncode == status, done.stderr


def test_a_server_without_its_option_is_an_error_with_the_option():
    for arguments in (("status", "localhost"), ("inspect", "device", "d", "localhost:7433")):
        status, _, message = invoke(*arguments)
        assert status == 2
        assert message.endswith(f"({arguments[-1]}); give a server as --server HOST[:PORT]\n")


@pytest.mark.processes
def test_a_variable_names_it(plain):
    status, out, _ = run("status", NEARCAST_SERVER=plain.target)
    assert (status, out.startswith("SERVING")) == (0, True)


# -- TLS and tokens ------------------------------------------------------------------------------------


@pytest.mark.processes
def test_tls_and_tokens(files, secured):
    server = f"--server=localhost:{secured}"
    root, file = f"--tls-roots={files / 'roots.pem'}", f"--token-file={files / 'token'}"
    assert run("status", server, root, file)[0] == 0
    assert run("status", server, "--tls", file, SSL_CERT_FILE=str(files / "roots.pem"))[0] == 0
    by_variables = {
        "NEARCAST_TLS": "true",
        "NEARCAST_TOKEN": (files / "token").read_text().strip(),
        "SSL_CERT_FILE": str(files / "roots.pem"),
    }
    assert run("status", server, **by_variables)[0] == 0
    assert run("status", server, root, file, "--tls-server-name=localhost")[0] == 0
    assert "token is absent" in run("status", server, root)[2]


@pytest.mark.processes
def test_a_token_on_the_command_line_goes_before_the_variable_of_a_file(files, secured):
    server, root = f"--server=localhost:{secured}", f"--tls-roots={files / 'roots.pem'}"
    text = (files / "token").read_text().strip()
    other = "wrong"
    (files / "wrong").write_text(other)
    assert run("status", server, root, "--token", text, NEARCAST_TOKEN_FILE=str(files / "wrong"))[0] == 0
    file = f"--token-file={files / 'token'}"
    assert run("status", server, root, file, NEARCAST_TOKEN=other)[0] == 0
    status, _, message = run("status", server, root, file, "--token", text)
    assert (status, "--token and --token-file are mutually exclusive" in message) == (2, True)


@pytest.mark.processes
@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ((), "Socket closed; does the server require TLS? Give --tls, or --tls-roots FILE"),
        (
            ("--tls-roots={files}/others.pem",),
            "its certificate is not from one of the roots: set others",
        ),
        (("--tls",), "its certificate is not from one of the roots: set others with --tls-roots"),
    ],
)
@pytest.mark.parametrize(
    "command", ["status", "top --once", "inspect device d", "idf load {files}/idf.json"]
)
def test_tls_errors_have_a_hint(files, secured, command, flags, message):
    (files / "idf.json").write_text('{"format": "nearcast-idf", "version": 1, "weights": {}}')
    arguments = [one.format(files=files) for one in (*command.split(), *flags)]
    status, out, error = invoke(*arguments, f"--server=localhost:{secured}")
    assert (status, out) == (1, "")
    (line,) = error.splitlines()
    assert line.startswith("Error: the server cannot be reached: UNAVAILABLE: ")
    assert "tls=" not in line, "the hint is of options"
    assert message in line


@pytest.mark.processes
def test_a_name_that_is_not_in_the_certificate(files, secured):
    root = f"--tls-roots={files / 'roots.pem'}"
    flags = (f"--server=localhost:{secured}", root, "--tls-server-name=example.org")
    (line,) = run("status", *flags)[2].splitlines()
    assert line.endswith("its certificate has another name: set it with --tls-server-name")


@pytest.mark.processes
def test_grpc_prints_nothing_itself(files, secured):
    """A process writes the line and no more: what gRPC's core logs is seen in none of the tests above."""
    flags = (f"--server=localhost:{secured}", f"--tls-roots={files / 'others.pem'}")
    (line,) = run("status", *flags)[2].splitlines()
    assert "its certificate is not from one of the roots: set others" in line


@pytest.mark.processes
def test_a_server_that_speaks_no_tls(plain):
    (line,) = run("status", f"--server={plain.target}", "--tls")[2].splitlines()
    assert line.endswith("does the server use TLS? If not, leave out --tls and --tls-roots")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a-host\n", "has no certificate in PEM"),
        (b"", "has no certificate in PEM"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "cannot be decoded"),
        (b"-----BEGIN CERTIFICATE-----\n\xff\n-----END CERTIFICATE-----\n", "cannot be decoded"),
    ],
)
def test_a_file_that_has_no_certificates_is_named_in_a_line(tmp_path, content, message):
    path = tmp_path / "roots.pem"
    path.write_bytes(content)
    status, _, error = invoke("status", f"--tls-roots={path}")
    assert status == 1
    (line,) = error.splitlines()
    assert line.startswith(f"Error: --tls-roots: {path} has ")
    assert line.endswith(message)


def test_a_file_that_has_no_token(tmp_path):
    path = tmp_path / "token"
    path.write_bytes(b"\xff")
    status, _, error = invoke("status", f"--token-file={path}")
    assert (status, error.startswith(f"Error: --token-file {path} cannot be read")) == (1, True)


# -- a server that gives no response -------------------------------------------------------------------


@pytest.mark.processes
@pytest.mark.parametrize(
    "command", ["status", "top --once", "inspect device d", "idf load {folder}/idf.json"]
)
def test_a_server_that_hangs_is_given_up(plain, tmp_path, command):
    (tmp_path / "idf.json").write_text('{"format": "nearcast-idf", "version": 1, "weights": {}}')
    arguments = command.format(folder=tmp_path).split()
    plain.send(signal.SIGSTOP)
    try:
        status, out, error = invoke(*arguments, f"--server={plain.target}")
    finally:
        plain.send(signal.SIGCONT)
    assert (status, out) == (1, "")
    assert error == f"Error: {plain.target} accepts connections, but gave no response within 5 s\n"


# -- numbers -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("subscription", "d", "1", "--object=99999999999999999999"),
            "99999999999999999999 is not in the range",
        ),
        (("subscription", "d", "99999999999"), "99999999999 is not in the range"),
        (("object", "99999999999999999999"), "99999999999999999999 is not in the range"),
        (
            ("subscription", "d", "near"),
            "'near' is not a number; `nearcast inspect device DEVICE_ID` shows numbers",
        ),
        (("object", "bar-7"), "'bar-7' is not a number; the key of an object is given as --key KEY"),
        (("subscription", "d", "1", "--object=bar-7"), "is given as --key KEY"),
    ],
)
def test_a_number_that_no_id_can_be(arguments, message):
    status, _, error = invoke("inspect", *arguments)
    assert (status, message in error) == (2, True)
