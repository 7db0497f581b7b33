"""windlass dev: a worker that restarts when its sources change."""

import os
from pathlib import Path
from typing import Annotated

import typer

from windlass.cli.reach import AppArgument, LogFormatOption, WorkAppOption, app_to_work
from windlass.cli.run import flag
from windlass.client.runtime import loops
from windlass.core.moments import parse_duration
from windlass.core.text import printable
from windlass.observe.logs import check_format, log_events
from windlass.worker.config import WorkerConfig, parse_queues
from windlass.worker.load import parse_path


def dev(
    context: typer.Context,
    app: AppArgument = None,
    option: WorkAppOption = None,
    queues: Annotated[str | None, flag("queues", "mail,images:4 - as for `windlass worker`.")] = None,
    concurrency: Annotated[int, flag("concurrency", "Slots per runner.")] = 10,
    processes: Annotated[int, flag("processes", "Runners.")] = 1,
    lease: Annotated[str, flag("lease", "Time without renewal after which a runner's jobs are rescued.")] = "30s",
    drain: Annotated[
        str, typer.Option("--drain", help="Time for running jobs before a restart; then they are requeued.")
    ] = "5s",
    port: Annotated[
        int, typer.Option("--port", help="The port of the REST server on 127.0.0.1; another if it is taken.")
    ] = 8321,
    server: Annotated[bool, typer.Option("--server/--no-server", help="Whether to start the REST server.")] = True,
    opens: Annotated[bool, typer.Option("--open", help="Open the dashboard in your browser, logged in.")] = False,
    log_format: LogFormatOption = "text",
    quiet: Annotated[bool, typer.Option("--quiet", help="Do not log completions.")] = False,
) -> None:
    """Run jobs while you write them: a worker and a REST server that restart when a Python file here changes.

    An app that cannot be imported is shown with its traceback, and tried again at the next save. The server listens
    on this machine alone, and its token is valid for this run. The link to the dashboard logs a browser in, once.
    """
    path = app_to_work(context, app, option)
    parse_path(path)
    config = WorkerConfig(
        app=path,
        queues=parse_queues(queues.split(",")) if queues else {},
        concurrency=concurrency,
        processes=processes,
        lease=parse_duration(lease, "--lease"),
        drain=parse_duration(drain, "--drain"),
        verbose=not quiet,
        log_format=check_format(log_format),
    ).checked()
    # Compiled files are checked by the second and the size of their source: two quick saves would look like one.
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    raise typer.Exit(loops.run(_develop(config, port if server else None, opens)))


async def _develop(config: WorkerConfig, port: int | None, opens: bool) -> int:
    # Here and not above: every other command starts without them.
    from windlass.worker.dev import Dev, Sources, source_paths
    from windlass.worker.dev_server import DevServer, missing_part, usable_port

    sources, screen = Sources(source_paths(config.app, Path.cwd())), Terminal()
    server = None
    if port is not None and (missing := missing_part()):
        screen.news(f"no REST server: it needs {missing} (pip install 'windlass[server]')")
    elif port is not None:
        server = DevServer(config.app, usable_port(port), opens=opens)
    emit = log_events(verbose=config.verbose, format=config.log_format)
    return await Dev(config, sources, emit, screen, server).run()


class Terminal:
    """Standard error, in colours if it is a terminal."""

    def news(self, text: str) -> None:
        """One line of news."""
        typer.secho(f"dev: {printable(text)}", fg="cyan", err=True)

    def trouble(self, text: str) -> None:
        """An error, with its traceback."""
        typer.secho(f"\n{printable(text).rstrip()}\n", fg="red", err=True)
