"""Subcommands of `nearcast simulate`."""
