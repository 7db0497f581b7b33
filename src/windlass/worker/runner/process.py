"""A runner: one process of a worker, in which handlers run. It claims, runs and settles on its own.

Its supervisor starts it (never by a fork), with one end of a socket pair and the shared table. If the supervisor
ends, the channel closes: the runner stops claiming, finishes within its lease, and exits.
"""

import asyncio
import faulthandler
import functools
import gc
import os
import signal
import socket
import sys
import traceback

import msgspec

from windlass.client.app import App
from windlass.client.runtime.loops import loop_factory
from windlass.core.events import Emit
from windlass.core.jobs.retry import ByError, StoredPolicy
from windlass.errors import StoreUnavailable, StoreUnusable, WindlassError
from windlass.observe.figures import Figures
from windlass.observe.logs import log_events
from windlass.observe.process import want_figures, watch_events, watch_store
from windlass.store.contract import Store
from windlass.store.records import ProcessRole
from windlass.worker.channel import Channel, Goodbye, Hello, StartFailed, Stop
from windlass.worker.config import WorkerConfig
from windlass.worker.handlers.job_logging import add_job_to_records, keep_job_logs, show_app_logs
from windlass.worker.load import import_trouble, load_app_for_work
from windlass.worker.runner.engine import Engine
from windlass.worker.runner.held_jobs import MAX_PREFETCHED
from windlass.worker.shared_table import SharedTable
from windlass.worker.stacks import STACK_SIGNAL
from windlass.worker.stop_signals import ignore_in_this_process, on_sigterm
from windlass.worker.store_retry import retry_until_done
from windlass.worker.through_server import open_worker_store, redirect_app, runnable


class RunnerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """The command line of a runner."""

    worker: WorkerConfig
    socket: int
    """The descriptor of its end of the socket pair."""
    table: int
    """The descriptor of the shared table."""
    stacks: int
    """The descriptor of the file for stack traces."""
    figures: int | None = None
    """The descriptor of the memory for figures, if the supervisor exposes them."""
    mark: str
    """In the environment of its handler processes: the supervisor finds them by it after the runner's end."""


def table_size(config: WorkerConfig) -> int:
    """Entries for all jobs that a runner may hold at once: in slots, prefetched, and outcomes in flight."""
    return 2 * (config.concurrency + MAX_PREFETCHED)


async def serve(config: RunnerConfig) -> None:
    """Load the app, say hello, and run."""
    end = socket.socket(fileno=config.socket)
    channel = await Channel.over(end)
    if config.figures is not None:
        want_figures(Figures.shared(config.figures))
    log = log_events(verbose=config.worker.verbose, format=config.worker.log_format)
    emit = watch_events(log, "runner")
    try:
        app = load_app_for_work(config.worker.app)
        redirect_app(app, config.worker.server, config.worker.token)
    except BaseException as error:
        channel.send(StartFailed(import_trouble(config.worker.app, error)))
        return
    try:
        # Handlers use the same store with the app's timeout; the runner itself waits for a store that is away.
        store = watch_store(open_worker_store(config.worker, app.store, ProcessRole.RUNNER), "runner")
        app.adopt(store, asyncio.get_running_loop())
        app.offload()  # a relative folder is relative to here, even if handlers change the folder
        if not await _opened(app, store, channel, emit):
            return
        undeclared = await _undeclared(app, config.worker)
        table = SharedTable(config.table, table_size(config.worker))
        engine = Engine(app, app._traced(store), config.worker, table, channel, emit, config.mark)
        await engine.start()
    except WindlassError as error:
        of_store = isinstance(error, StoreUnavailable) and not isinstance(error, StoreUnusable)
        channel.send(StartFailed(str(error), of_store=of_store))
        return
    _set_up_logging(app, config.worker.log_format)
    # Without this each full garbage collection scans the whole app.
    gc.collect()
    gc.freeze()
    on_sigterm(functools.partial(engine.stop, config.worker.drain))
    channel.send(hello(app, store, config.worker, undeclared))
    try:
        await engine.run()
    except StoreUnusable as error:
        channel.send(StartFailed(str(error)))
        await channel.drain()
        return
    finally:
        engine.kill_processes()
        log.flush()
    if not engine.orphan:
        channel.send(Goodbye())
        await channel.drain()
        if engine.failure is not None and not isinstance(engine.failure, StoreUnusable):
            raise engine.failure  # after Goodbye: jobs are requeued without counting a failure
        await store.close()
    # An orphan sends nothing: its liveness lock, free but not removed, shows other workers that it is dead.


async def _undeclared(app: App, config: WorkerConfig) -> tuple[str, ...]:
    """Schedules that no app declares any more; behind a server none are reported."""
    return () if config.server else tuple(each.name for each in await app.schedules.aundeclared())


def _set_up_logging(app: App, format: str) -> None:
    """For what handlers log; after the start, since the app or its hooks may have set up logging anew."""
    add_job_to_records()
    show_app_logs(format=format)
    keep_job_logs(app.keep_logs)


async def _opened(app: App, store: Store, channel: Channel, emit: Emit) -> bool:
    """Open the store; False if the supervisor sends Stop, or ends, meanwhile."""
    opening = asyncio.create_task(
        retry_until_done("opening the store", lambda: open_with_app(app, store), emit, hopeful=False)
    )
    unwanted = asyncio.create_task(_until_told_to_stop(channel))
    await asyncio.wait([opening, unwanted], return_when=asyncio.FIRST_COMPLETED)
    if unwanted.done():
        opening.cancel()
        return False
    unwanted.cancel()
    await asyncio.wait([unwanted])  # the channel has one reader at a time
    opening.result()
    return True


async def open_with_app(app: App, store: Store) -> None:
    """Write the declarations of the app, and read: a store that refuses is reported now."""
    await app.declare(store)
    await store.queues.list()


async def _until_told_to_stop(channel: Channel) -> None:
    """Wait until the supervisor sends Stop or closes the channel."""
    async for message in channel.from_supervisor():
        if isinstance(message, Stop):
            return


def hello(app: App, store: Store, config: WorkerConfig, undeclared: tuple[str, ...] = ()) -> Hello:
    """The facts about the app that the supervisor needs."""
    blobs = app.offload()
    address = None if blobs is None else blobs.address
    types, parameters = runnable(app, config), app.registry.parameters
    return Hello(store.address, app.queue_names, types, retries(app), address, undeclared, parameters)


def retries(app: App) -> dict[str, StoredPolicy]:
    """The retry policies of the app's tasks, as far as they can be applied without its code."""
    policies = {type_: app.registry.get(type_).retry for type_ in app.registry.types}
    plain = {type_: each.otherwise if isinstance(each, ByError) else each for type_, each in policies.items()}
    return {type_: each for type_, each in plain.items() if isinstance(each, StoredPolicy)}


def main() -> None:
    """The main function of the process; it ends hard, because a stuck thread must not keep it alive."""
    config = msgspec.json.decode(sys.argv[1], type=RunnerConfig)
    faulthandler.register(STACK_SIGNAL, file=config.stacks, all_threads=True)
    ignore_in_this_process(signal.SIGINT, signal.SIGHUP)
    code = 0
    # Never closed: that would wait for threads and tasks of handlers without a limit.
    runner = asyncio.Runner(loop_factory=loop_factory())
    try:
        runner.run(serve(config))
    except BaseException:
        traceback.print_exc()
        code = 1
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    main()
