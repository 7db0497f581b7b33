"""The command `windlass`, and exit codes: 0 done, 1 failed, 2 wrong call."""

import os
import sys
from typing import Annotated

import typer

from windlass.cli.commands import Commands
from windlass.cli.reach import log_settings, worker_settings
from windlass.core.text import printable
from windlass.errors import ConfigError, InvalidInput, InvalidTime, UnknownTask, WindlassError
from windlass.version import __version__

WRONG_CALL = (ConfigError, InvalidInput, UnknownTask)
FROM_WORKER = ("queues", "concurrency", "processes", "lease")
"""Settings of `windlass worker` that apply to `windlass dev` too; the others make no sense there."""

cli = typer.Typer(
    cls=Commands,
    help="Windlass: a job queue for Python. An accepted job is never lost.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"windlass {__version__}")
        raise typer.Exit


@cli.callback()
def entry(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Flags come first, then WINDLASS_* variables, then windlass.toml or [tool.windlass] in pyproject.toml."""
    settings = worker_settings()
    shared = {name: value for name, value in settings.items() if name in FROM_WORKER}
    common = log_settings()
    context.default_map = {
        "worker": {**common, **settings},
        "dev": {**common, **shared},
        **dict.fromkeys(("serve", "coordinator"), common),
    }


def _point_out(error: WindlassError) -> None:
    """A marker under the invalid part of a cron expression."""
    if isinstance(error, InvalidTime) and error.part is not None:
        text = "".join(" " if char.isspace() else char for char in error.text)
        begin, end = (len(printable(text[:index])) for index in error.part)
        typer.echo(f"       {printable(text)}\n       {' ' * begin}{'^' * (end - begin)}", err=True)


def main(commands: typer.Typer = cli) -> None:
    """Run a command; a user's mistake ends in one line, not in a traceback."""
    try:
        commands()
    except WindlassError as error:
        lines = str(error).splitlines() or [type(error).__name__]
        for line in lines:
            typer.echo(f"error: {printable(line)}" if line is lines[0] else f"       {printable(line)}", err=True)
        _point_out(error)
        sys.exit(2 if isinstance(error, WRONG_CALL) else 1)
    except BrokenPipeError:
        # The reader closed the pipe; that is no error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
