"""A group of commands, one of them about a device: a device id in its place gets a hint."""

from __future__ import annotations

import click

from cli.target_options import AskingCommand


class DeviceGroup(click.Group):
    """A group with a command `device`. The error for an unknown command names it."""

    command_class = AskingCommand

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command of the first argument, and the arguments after it."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            message = error.format_message()
            if args[0].startswith("-") or "Did you mean" in message:
                raise
            hint = f"Did you mean `{ctx.command_path} device {args[0]}`?"
            raise click.UsageError(f"{message} {hint}", ctx) from None
