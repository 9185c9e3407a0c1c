"""`nearcast gateway`: its settings, from flags, variables and a file."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request

import pytest
from click.testing import CliRunner

from cli.gateway import gateway
from cli.options import facts_of, gateway_settings
from cli.settings_errors import read_settings


def refused(*arguments, environment=None):
    """Run the command, which is to be refused; return what it says."""
    found = CliRunner().invoke(gateway, arguments, env=environment)
    assert found.exit_code != 0
    return found.output


def started(*arguments, environment=None):
    """A gateway as a process, without a server."""
    return subprocess.Popen(
        [sys.executable, "-m", "cli", "gateway", "--port", "0", "--server", "127.0.0.1:1", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, **(environment or {})},
    )


@pytest.mark.parametrize(
    ("arguments", "environment", "text"),
    [
        (["--port", "x"], {}, "--port is 'x', must be a whole number, 0 to 65535"),
        ([], {"NEARCAST_GATEWAY_PORT": "70000"}, "NEARCAST_GATEWAY_PORT is '70000', must be"),
        (["--host", "0.0.0.0"], {}, "--host is '0.0.0.0', must be of this machine"),  # noqa: S104
        (["--host", ""], {}, "--host is '', must be an address or a name of this machine"),
        (["--metrics-host", "[]"], {}, "--metrics-host is '[]', must be an address or a name"),
        (["--server", "http://a"], {}, "--server is 'http://a', must be HOST"),
        (["--origin", "example.com"], {}, "--origin has 'example.com', must have"),
        (["--jwks", "nothing"], {}, "--jwks is 'nothing', must be an existing file"),
        (["--server-token-file", "nothing"], {}, "--server-token-file"),
        (["--tls-certificate", __file__], {}, "--tls-certificate needs --tls-key"),
        ([], {"NEARCAST_GATEWAY_ORIGINS": "x"}, "NEARCAST_GATEWAY_ORIGINS must be a JSON list"),
    ],
)
def test_wrong_settings_are_lines_that_name_them(arguments, environment, text):
    assert text in refused(*arguments, environment=environment)


def test_secrets_are_not_shown():
    said = refused("--dev-token", "s3cret", "--host", "0.0.0.0", "--port", "x")  # noqa: S104
    assert "s3cret" not in said


def test_flags_win_over_variables_and_these_over_the_file(tmp_path, monkeypatch):
    file = tmp_path / "gateway.toml"
    file.write_text('port = 1\ndevice_rate = 7.0\norigins = ["https://a.com"]\n', encoding="utf-8")
    monkeypatch.setenv("NEARCAST_GATEWAY_PORT", "2")
    monkeypatch.setenv("NEARCAST_GATEWAY_ORIGINS", json.dumps(["https://b.com"]))
    found = read_settings(gateway_settings(), {"origins": ("https://c.com",)}, file)
    assert (found.port, found.device_rate, found.origins) == (2, 7.0, ("https://c.com",))
    file.write_text("prot = 1\n", encoding="utf-8")
    assert "did you mean 'port'?" in refused("--config", str(file))


def test_the_help_has_every_setting():
    said = re.sub(r"\s+", " ", CliRunner().invoke(gateway, ["--help"]).output)
    for facts in facts_of(gateway_settings()).values():
        assert facts.flag in said
        assert facts.variable in said


@pytest.mark.processes
@pytest.mark.parametrize("host", ["::1", "[::1]"])
def test_an_ipv6_address(host):
    with started("--host", host, "--metrics-host", host, "--metrics-port", "0") as process:
        address = process.stdout.readline().removeprefix("gateway on ").strip()
        metrics = process.stdout.readline().removeprefix("metrics on ").strip()
        with urllib.request.urlopen(f"http://{address}/healthz") as response:
            assert json.load(response) == {"status": "alive"}
        with urllib.request.urlopen(metrics) as response:  # noqa: S310 - http
            assert "nearcast_gateway_" in response.read().decode()
        process.terminate()
        assert f"gateway on {address}, for the server" in process.stderr.read()
    assert process.returncode == 0


@pytest.mark.processes
@pytest.mark.parametrize(
    "content", [b"a-host\n", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_roots_without_certificates_are_a_line_that_names_the_file(tmp_path, content):
    path = tmp_path / "roots.pem"
    path.write_bytes(content)
    with started("--server-tls-roots", str(path)) as process:
        said = process.communicate()
    assert said == ("", f"Error: {path} has no certificate in PEM, or a damaged one\n")
    assert process.returncode == 1


def test_the_name_in_the_certificate_implies_tls():
    flags = {"server": "near.example", "server_tls_name": "other.example"}
    assert read_settings(gateway_settings(), flags, None).has_server_tls
    assert "must be of this machine without TLS" in refused("--server", "near.example")


@pytest.mark.processes
def test_a_variable_that_is_no_setting_is_named(tmp_path):
    names = ("ORIGIN", "CONNECTION_MAX", "PORT_7480_TCP", "SERVICE_PORT_WEB", "KEEPALIVE_MS")
    environment = {f"NEARCAST_GATEWAY_{name}": "1000" for name in names}
    path = tmp_path / "roots.pem"
    path.touch()
    with started("--server-tls-roots", str(path), environment=environment) as process:
        *warnings, _ = process.communicate()[1].splitlines()
    effect = "is not a setting and has no effect: did you mean"
    assert [line.partition("the variable ")[2] for line in warnings] == [
        f"NEARCAST_GATEWAY_CONNECTION_MAX {effect} NEARCAST_GATEWAY_CONNECTIONS_MAX?",
        f"NEARCAST_GATEWAY_ORIGIN {effect} NEARCAST_GATEWAY_ORIGINS?",
    ]
