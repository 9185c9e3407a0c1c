"""`nearcast plan`: the machines that a number of devices needs."""

from cli.plan.command import plan

__all__ = ["plan"]
