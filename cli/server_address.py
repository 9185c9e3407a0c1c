"""Where a server is, as an option: a host, perhaps with a port. The rule is the SDK's."""

from __future__ import annotations

from typing import Any

import click

PORT = 7433
"""`nearcast.address.PORT`, which `--help` shows without waiting for the SDK."""


class ServerAddress(click.ParamType[Any]):
    """HOST or HOST:PORT, without a scheme; becomes HOST:PORT."""

    name = "HOST[:PORT]"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        """Read it."""
        from nearcast.address import AddressError, server_address  # noqa: PLC0415

        try:
            return server_address(str(value).strip())
        except AddressError as error:
            self.fail(f"{error}, and --tls asks for TLS" if error.scheme else str(error), param, ctx)
