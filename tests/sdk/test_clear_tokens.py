"""A token is not sent in the clear to another machine, unless the caller says so."""

from __future__ import annotations

import pytest

import nearcast
from nearcast.transport.loopback import is_loopback

LOCAL = (
    "localhost",
    "localhost:7433",
    "LOCALHOST.:1",
    "127.0.0.1:7433",
    "127.8.8.8",
    "[::1]:7433",
    "::1",
    "ipv4:127.0.0.1:80",
    "ipv6:[::1]:80,[::1]:81",
    "ipv6:%5B::1%5D:80",
    "dns:localhost:80",
    "dns:///localhost:80",
    "unix:/run/nearcast.sock",
    "unix:///run/nearcast.sock",
)
ELSEWHERE = (
    "example.org",
    "example.org:7433",
    "localhost.example.org:7433",
    "10.0.0.1:80",
    "0.0.0.0:80",
    "[::]:80",
    "[2001:db8::1]:7433",
    "::ffff:10.0.0.1",
    "ipv4:127.0.0.1:80,10.0.0.1:80",
    "dns://localhost/example.org:80",
    "dns:///example.org",
    "xds:///localhost",
    "vsock:2:1",
    "127.0.0.1.example.org:80",
    "127.1:80",
)


@pytest.mark.parametrize("target", LOCAL)
def test_addresses_of_this_machine(target: str) -> None:
    assert is_loopback(target)


@pytest.mark.parametrize("target", ELSEWHERE)
async def test_a_possible_other_machine_is_sent_no_token_in_the_clear(target: str) -> None:
    assert not is_loopback(target)
    for token in ("secret", lambda: "secret"):
        with pytest.raises(nearcast.RefusedError, match="tls is None, must be a Tls") as found:
            async with nearcast.connect(target, token=token):
                pass
        assert target in str(found.value)
        assert "secret" not in str(found.value)


async def test_insecure_sends_it_in_the_clear() -> None:
    for more in ({"insecure": True}, {"tls": nearcast.Tls()}):
        async with nearcast.connect("192.0.2.1:9", token="secret", **more):  # noqa: S106
            pass
    async with nearcast.connect("192.0.2.1:9"):
        pass
