"""`nearcast`: the group of commands."""

from __future__ import annotations

from importlib.metadata import version

import click

from cli.bench import bench
from cli.compile import compile_
from cli.demo import demo
from cli.forget import forget
from cli.idf import idf
from cli.inspect_command import inspect
from cli.replay import replay
from cli.serve import serve
from cli.simulate import simulate
from cli.status import status
from cli.store import store
from cli.stream import stream, stream_audit, stream_lists, stream_release
from cli.stream_demo import stream_demo
from cli.token import token
from cli.top import top


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(version("nearcast"), prog_name="nearcast")
def app() -> None:
    """Exact results for devices that move, and silence in between."""


app.add_command(serve)
app.add_command(compile_)
app.add_command(idf)
app.add_command(status)
app.add_command(inspect)
app.add_command(forget)
app.add_command(top)
app.add_command(token)
app.add_command(simulate)
app.add_command(replay)
app.add_command(demo)
app.add_command(bench)
app.add_command(store)
app.add_command(stream)
app.add_command(stream_lists)
app.add_command(stream_audit)
app.add_command(stream_release)
app.add_command(stream_demo)
