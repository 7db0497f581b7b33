"""A runner: one process of a worker, in which handlers run. It claims, runs and settles for itself.

Started fresh by its supervisor (never forked), with one end of a socket pair and the shared table. If the
supervisor goes away, the line ends: the runner claims nothing more, finishes within its lease, and exits.
"""

import asyncio
import faulthandler
import functools
import os
import signal
import socket
import sys
import traceback

import msgspec

from windlass.client.app import App
from windlass.client.loops import loop_factory
from windlass.core.events import Emit
from windlass.core.retry import ByError, Exponential, Fixed, Linear, StoredPolicy
from windlass.errors import WindlassError
from windlass.observe.history import heard, recorded
from windlass.observe.logs import log_events
from windlass.store.contract import Store
from windlass.store.open import open_store
from windlass.store.opener import Opener
from windlass.worker.config import WorkerConfig
from windlass.worker.engine import Engine
from windlass.worker.link import Bye, Hello, Link, Problem, Stop
from windlass.worker.load import import_trouble, load_app
from windlass.worker.logbook import keep_lines, stamp_records
from windlass.worker.pace import MOST_PREFETCHED
from windlass.worker.patience import persist
from windlass.worker.stacks import ASK
from windlass.worker.table import Table


class RunnerConfig(msgspec.Struct, frozen=True, kw_only=True):
    """What the supervisor tells a runner on its command line."""

    worker: WorkerConfig
    line: int
    """The descriptor of its end of the socket pair."""
    table: int
    """The descriptor of the shared table."""
    stacks: int
    """The descriptor of the file for stack traces."""


def table_size(config: WorkerConfig) -> int:
    """Entries for all that a runner may hold at once: slots, prefetched jobs, outcomes on their way."""
    return 2 * (config.concurrency + MOST_PREFETCHED)


async def serve(config: RunnerConfig) -> None:
    """Load the app, say hello, and run."""
    end = socket.socket(fileno=config.line)
    link = await Link.over(end)
    emit = heard(log_events(verbose=config.worker.verbose), "runner")
    try:
        app = load_app(config.worker.app)
    except BaseException as error:
        link.say(Problem(import_trouble(config.worker.app, error)))
        return
    try:
        # Handlers must not freeze the whole process on a store that is away; the runner itself has patience.
        store = recorded(open_store(app.store, opener=Opener.RUNNER), "runner")
        app.adopt(store, asyncio.get_running_loop())
        app.offload()  # a relative folder is the one here, wherever handlers may go
        if not await _opened(app, store, link, emit):
            return
        table = Table(config.table, table_size(config.worker))
        engine = Engine(app, store, config.worker, table, link, emit)
        await engine.start()
    except WindlassError as error:
        link.say(Problem(str(error)))
        return
    # The app or its hooks may have set up logging anew.
    stamp_records()
    keep_lines(app.keep_logs)
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, functools.partial(engine.stop, config.worker.drain))
    link.say(_hello(app, store))
    try:
        await engine.run()
    finally:
        engine.end_cells()
    if not engine.orphan:
        link.say(Bye())
        await link.drain()
        await store.close()
    # An orphan leaves without a word: its lock, free without being cleared away, tells the others that it is dead.


async def _opened(app: App, store: Store, link: Link, emit: Emit) -> bool:
    """Whether the store is there: not if we are told to stop, or are left alone, while we wait for it."""
    opening = asyncio.create_task(persist("opening the store", lambda: app.declare(store), emit, hopeful=False))
    unwanted = asyncio.create_task(_unwanted(link))
    await asyncio.wait([opening, unwanted], return_when=asyncio.FIRST_COMPLETED)
    if unwanted.done():
        opening.cancel()
        return False
    unwanted.cancel()
    await asyncio.wait([unwanted])  # one listens at a time
    opening.result()
    return True


async def _unwanted(link: Link) -> None:
    """Until the supervisor says stop, or says nothing any more."""
    async for message in link.from_supervisor():
        if isinstance(message, Stop):
            return


def _hello(app: App, store: Store) -> Hello:
    blobs = app.offload()
    address = None if blobs is None else blobs.address
    return Hello(store.address, app.queue_names, app.registry.types, retries(app), address)


def retries(app: App) -> dict[str, StoredPolicy]:
    """The retry policies of the app's tasks, as far as they can be told to somebody without its code."""
    policies = {type_: app.registry.get(type_).retry for type_ in app.registry.types}
    plain = {type_: each.otherwise if isinstance(each, ByError) else each for type_, each in policies.items()}
    return {type_: each for type_, each in plain.items() if isinstance(each, Exponential | Linear | Fixed)}


def main() -> None:
    """The process's own main; ends hard, because a deaf thread must not keep it alive."""
    config = msgspec.json.decode(sys.argv[1], type=RunnerConfig)
    faulthandler.register(ASK, file=config.stacks, all_threads=True)
    # Ctrl-C in a terminal reaches every process of the group; the supervisor speaks for us all.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    code = 0
    # Never closed: that would wait for threads and tasks of handlers, for as long as they like.
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
