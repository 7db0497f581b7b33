"""A program that gevent has patched: whatever becomes of the event loop behind a call, its greenlet hears of it."""

import asyncio
import threading
from typing import Any

import gevent
import shop  # type: ignore[import-not-found]
from gevent import monkey
from gevent.event import Event

from windlass import StoreUnavailable, errors
from windlass.client.runtime import loop_call
from windlass.client.runtime.loop_call import NotBegun
from windlass.client.runtime.portal import Portal

monkey.patch_all()
PATIENCE = 30


def error_of(call: Any) -> BaseException:
    """What a call raises in a greenlet of its own."""
    greenlet = gevent.spawn(call)
    greenlet.join(PATIENCE)
    assert greenlet.exception is not None, f"{call} did not fail: {greenlet}"
    found: BaseException = greenlet.exception
    return found


def task_cannot_be_made() -> None:
    portal = Portal()

    async def refuse_one_task() -> None:
        def make(loop: asyncio.AbstractEventLoop, work: Any, **_: Any) -> Any:
            loop.set_task_factory(None)
            raise MemoryError("no room for a task")

        asyncio.get_running_loop().set_task_factory(make)

    portal.run(refuse_one_task())
    assert isinstance(error_of(lambda: portal.run(asyncio.sleep(0))), MemoryError)
    portal.close()


def loop_ends() -> None:
    """One call is under way when the portal is closed, another comes later."""
    portal, waits = Portal(), Event()
    hub = gevent.get_hub()

    async def wait() -> None:
        hub.loop.run_callback_threadsafe(waits.set)
        await asyncio.Event().wait()

    early = gevent.spawn(portal.run, wait())
    assert waits.wait(PATIENCE)
    portal.close()
    early.join(PATIENCE)
    assert isinstance(early.exception, StoreUnavailable), repr(early)
    assert early.exception.maybe_done
    assert isinstance(error_of(lambda: portal.run(asyncio.sleep(0))), NotBegun)


def loop_is_closed_before_the_call_begins() -> None:
    loop_call.LOOK_SECONDS = 0.01
    loop = asyncio.new_event_loop()

    def close_instead(_: Any) -> None:
        loop.close()

    loop.call_soon_threadsafe = close_instead  # type: ignore[method-assign, assignment]
    assert isinstance(error_of(lambda: Portal(loop=loop).run(asyncio.sleep(0))), NotBegun)


def app_is_closed_while_greenlets_enqueue() -> None:
    """No greenlet waits for ever, and all that fails is of the tree."""
    over = threading.Event()

    def enqueue() -> int:
        done = 0
        while not over.is_set():
            try:
                shop.quick.enqueue()
                done += 1
            except errors.WindlassError:
                pass
            gevent.sleep(0)
        return done

    started = [gevent.spawn(enqueue) for _ in range(5)]
    for _ in range(10):
        gevent.sleep(0.02)
        shop.app.close()
    over.set()
    gevent.joinall(started, timeout=PATIENCE, raise_error=True)
    assert all(each.ready() for each in started)
    assert shop.app.jobs.count(type=shop.quick) >= sum(each.value for each in started)
    shop.app.close()


task_cannot_be_made()
loop_ends()
loop_is_closed_before_the_call_begins()
app_is_closed_while_greenlets_enqueue()
print("all of them ended")
