"""windlass worker, windlass coordinator, windlass migrate, windlass demo.

What only one command needs is imported in it, so that the others start faster.
"""

import asyncio
from typing import Annotated, Any

import typer

from windlass.cli.parse import parse_bytes, parse_host
from windlass.cli.reach import (
    AppArgument,
    AppOption,
    BlobsOption,
    LogFormatOption,
    OwnStoreOption,
    ServerOption,
    WorkAppOption,
    app_to_work,
    reach,
    server_to_work,
)
from windlass.client.app import App
from windlass.client.runtime import loops
from windlass.core.events import Emit
from windlass.core.moments import parse_duration
from windlass.observe.logs import check_format, log_events
from windlass.store.open import open_store, raise_buckets
from windlass.worker.config import WorkerConfig, parse_queues


def flag(name: str, text: str) -> Any:
    """An option of a worker, with its variable."""
    return typer.Option(f"--{name}", envvar=f"WINDLASS_WORKER_{name.upper().replace('-', '_')}", help=text)


def worker(
    context: typer.Context,
    app: AppArgument = None,
    option: WorkAppOption = None,
    queues: Annotated[
        str | None, flag("queues", "mail,images:4 - in this order; at most 4 slots for images in each runner.")
    ] = None,
    concurrency: Annotated[int, flag("concurrency", "Slots per runner.")] = 10,
    processes: Annotated[int, flag("processes", "Runners.")] = 1,
    lease: Annotated[str, flag("lease", "Time without renewal after which a runner's jobs are rescued.")] = "30s",
    drain: Annotated[str, flag("drain", "Time for running jobs after SIGTERM.")] = "30s",
    health: Annotated[str | None, flag("health", "HOST:PORT for /healthz, /readyz, /startupz and /metrics.")] = None,
    recycle_jobs: Annotated[
        int, flag("recycle-jobs", "A process for run_in='process' handlers is replaced after this number of jobs.")
    ] = 1000,
    recycle_memory: Annotated[
        str | None,
        flag(
            "recycle-memory",
            "It is also replaced when larger than this, such as 512MB; ignored if it starts larger.",
        ),
    ] = None,
    until_empty: Annotated[
        bool, flag("until-empty", "Exit 0 when nothing is pending, running, failed, or due now.")
    ] = False,
    verbose: Annotated[bool, flag("verbose", "Log claims and completions too.")] = False,
    log_format: LogFormatOption = "text",
    server: ServerOption = None,
) -> None:
    """Run jobs until stopped. SIGTERM drains; a second one requeues running jobs at once."""
    config = WorkerConfig(
        server=server_to_work(context, server),
        app=app_to_work(context, app, option),
        queues=parse_queues(queues.split(",")) if queues else {},
        concurrency=concurrency,
        processes=processes,
        lease=parse_duration(lease, "--lease"),
        drain=parse_duration(drain, "--drain"),
        health=parse_host(health) if health else None,
        recycle_jobs=recycle_jobs,
        recycle_memory=parse_bytes(recycle_memory, "--recycle-memory") if recycle_memory is not None else None,
        until_empty=until_empty,
        verbose=verbose,
        log_format=check_format(log_format),
    ).checked()
    raise typer.Exit(loops.run(_work(config)))


def demo(
    store: Annotated[
        str | None,
        typer.Option(
            "--store",
            help="A store to use instead of a temporary SQLite file: an empty one, or a PostgreSQL database or a "
            "Redis, where the demo makes a schema or a prefix of its own and drops it at the end.",
        ),
    ] = None,
) -> None:
    """Show a tour on a temporary SQLite file: jobs run, fail, die and are retried, and a runner is killed."""
    from windlass.demo.tour import run_demo

    raise typer.Exit(0 if run_demo(store) else 1)


async def _work(config: WorkerConfig) -> int:
    from windlass.worker.supervisor.supervisor import Supervisor

    return await Supervisor(config, log_events(verbose=config.verbose, format=config.log_format)).run()


def coordinator(
    store: OwnStoreOption = None,
    blobs: BlobsOption = None,
    health: Annotated[
        str | None,
        typer.Option(
            "--health",
            envvar="WINDLASS_COORDINATOR_HEALTH",
            help="HOST:PORT for /healthz, /readyz, /startupz and /metrics, with the gauges of the store.",
        ),
    ] = None,
    log_format: LogFormatOption = "text",
) -> None:
    """Do the coordinator's duties without running jobs."""
    emit = log_events(format=log_format)
    home = reach(store, blobs=blobs, make=True, takes_app=False, through_server=False)
    loops.run(_coordinate(home, parse_host(health) if health else None, emit))


async def _coordinate(home: App, health: tuple[str, int] | None, emit: Emit) -> None:
    from windlass.worker.coordinator import coordinate

    await coordinate(home, health, emit)


def migrate(
    store: OwnStoreOption = None,
    app: AppOption = None,
    buckets: Annotated[
        int | None,
        typer.Option("--buckets", help="YugabyteDB: raise the number of buckets to this, while workers run."),
    ] = None,
) -> None:
    """Migrate the store's tables or keys."""
    home = reach(store, app, make=True, default=app is not None, through_server=False)
    for line in asyncio.run(_migrate(home.store, buckets)):
        typer.echo(line)


async def _migrate(address: str, buckets: int | None) -> list[str]:
    store = open_store(address)
    try:
        applied = await store.migrate()
    finally:
        await store.close()
    lines = [f"applied {name}" for name in applied] or ["The schema is up to date."]
    if buckets is not None:
        before = await raise_buckets(address, buckets)
        lines.append(f"{buckets} buckets, {before} before" if before != buckets else f"There are {buckets} buckets.")
    return lines
