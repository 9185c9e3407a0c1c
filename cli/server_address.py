"""Option type for addresses of servers: a host, optionally with a port, as in the SDK."""

from __future__ import annotations

from typing import Any

import click

PORT = 7433
"""Value of `nearcast.address.PORT`, so that `--help` need not import the SDK."""


class ServerAddress(click.ParamType[Any]):
    """HOST or HOST:PORT, without a scheme, and commas between several; converted to HOST:PORT."""

    name = "HOST[:PORT],..."

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:  # noqa: ANN401
        """Convert the text of the argument."""
        from nearcast.address import AddressError, server_address  # noqa: PLC0415

        try:
            return ",".join(server_address(text.strip()) for text in str(value).split(","))
        except AddressError as error:
            self.fail(f"{error}, and --tls for TLS" if error.scheme else str(error), param, ctx)
