"""windlass top."""

import sys
from typing import Annotated

import typer

from windlass.cli.output.as_json import print_json
from windlass.cli.output.tables import console
from windlass.cli.reach import AppOption, JsonOption, OwnStoreOption, look
from windlass.cli.top.frame import frame
from windlass.cli.top.live import watch
from windlass.cli.top.snapshot import Hour, gather
from windlass.core.moments import SECOND, parse_duration
from windlass.errors import InvalidTime

MIN_EVERY = SECOND // 10
PLAIN_WIDTH = 120
"""The width for files and pipes, unless COLUMNS is set."""


def top(
    interval: Annotated[str, typer.Option(help="Time between two reads, such as 1s or 500ms.")] = "1s",
    once: Annotated[bool, typer.Option("--once", help="Print one frame and end, as without a terminal.")] = False,
    store: OwnStoreOption = None,
    app: AppOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch queues, types, workers and failures, live. q quits."""
    every = parse_duration(interval, "--interval")
    if every < MIN_EVERY:
        raise InvalidTime("--interval", f"must be at least 100ms, not {interval}")
    home, out = look(store, app, through_server=False), console(PLAIN_WIDTH)
    if as_json:
        print_json(gather(home))
    elif once or not sys.stdout.isatty() or out.is_dumb_terminal:
        out.print(frame(gather(home), out.width, None))
    else:
        hour = Hour()
        watch(lambda: gather(home, hour), out, every / SECOND)
