"""windlass worker, windlass coordinator, windlass migrate: what runs and prepares."""

import asyncio
import os
import signal
from typing import Annotated

import typer

from windlass.cli.reach import StoreOption, reach
from windlass.coordinator.coordinator import Coordinator
from windlass.core.ids import new_runner_id
from windlass.core.moments import parse_duration
from windlass.demo.tour import run_demo
from windlass.errors import ConfigError
from windlass.observe.logs import log_events
from windlass.store.open import open_store
from windlass.worker.config import WorkerConfig, parse_queues
from windlass.worker.supervisor import Supervisor


def worker(
    app: Annotated[str, typer.Argument(metavar="APP", envvar="WINDLASS_APP", help="module:object.")],
    queues: Annotated[
        str | None, typer.Option(help="mail,images:4 - in this order; at most 4 slots for images in each runner.")
    ] = None,
    concurrency: Annotated[int, typer.Option(help="Slots per runner.")] = 10,
    processes: Annotated[int, typer.Option(help="Runners.")] = 1,
    lease: Annotated[str, typer.Option(help="Silence after which jobs are rescued.")] = "30s",
    drain: Annotated[str, typer.Option(help="Time for running jobs after SIGTERM.")] = "30s",
    health: Annotated[str | None, typer.Option(help="HOST:PORT for /healthz and /readyz.")] = None,
    until_empty: Annotated[bool, typer.Option("--until-empty", help="Exit 0 when nothing is left to do.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log completions too.")] = False,
) -> None:
    """Run jobs until stopped. SIGTERM drains; a second one hands back at once."""
    config = WorkerConfig(
        app=app,
        queues=parse_queues(queues) if queues else {},
        concurrency=concurrency,
        processes=processes,
        lease=parse_duration(lease, "--lease"),
        drain=parse_duration(drain, "--drain"),
        health=parse_host(health) if health else None,
        until_empty=until_empty,
        verbose=verbose,
    ).checked()
    raise typer.Exit(asyncio.run(_work(config)))


def demo(store: StoreOption = None) -> None:
    """A tour on a temporary SQLite file: jobs run, fail, die and are revived, and a runner is killed."""
    raise typer.Exit(0 if run_demo(store) else 1)


async def _work(config: WorkerConfig) -> int:
    return await Supervisor(config, log_events(verbose=config.verbose)).run()


def coordinator(store: StoreOption = None) -> None:
    """Do the coordinator's duties without running jobs."""
    asyncio.run(_coordinate(reach(store).store))


async def _coordinate(address: str) -> None:
    store, candidate = open_store(address, first=True), new_runner_id(os.urandom)
    store.leases.vouch(candidate)
    holder = Coordinator(store, candidate, log_events())
    duty = asyncio.create_task(holder.run())
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, duty.cancel)
    try:
        await duty
    except asyncio.CancelledError:
        await holder.resign()
    finally:
        await store.close()


def migrate(store: StoreOption = None) -> None:
    """Bring the store's schema up to date."""
    applied = asyncio.run(_migrate(reach(store).store))
    typer.echo("\n".join(f"applied {name}" for name in applied) or "The schema is up to date.")


async def _migrate(address: str) -> list[str]:
    store = open_store(address)
    try:
        return await store.migrate()
    finally:
        await store.close()


def parse_host(text: str) -> tuple[str, int]:
    """127.0.0.1:8322, [::1]:8322."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise ConfigError(f"--health {text!r} should be HOST:PORT")
    return host.strip("[]"), int(port)
