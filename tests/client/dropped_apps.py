"""Apps are used and dropped without `close()`, in a process in which nothing else happens: ADDRESS, sync or async.

Ends well if threads and descriptors come back to what they are after an app that was closed.
"""

import asyncio
import contextlib
import gc
import os
import sys
import threading
import time
import warnings

from windlass import App

SECONDS = 30.0
APPS = 20

address = sys.argv[1]


def use(*, close: bool) -> None:
    """As a caller without an event loop does, all ways in."""
    app = App(address)

    @app.task(type="t")
    def task() -> None: ...

    handle = task.enqueue()
    assert app.jobs.get(handle.id).id == handle.id
    with contextlib.suppress(TimeoutError):
        handle.result(timeout=0)
    if close:
        app.close()


async def use_async(*, close: bool) -> None:
    app = App(address)

    @app.task(type="t")
    async def task() -> None: ...

    handle = await task.aenqueue()
    assert (await app.jobs.aget(handle.id)).id == handle.id
    with contextlib.suppress(TimeoutError):
        await handle.aresult(timeout=0)
    if close:
        await app.aclose()


def left() -> tuple[int, int]:
    """Threads and descriptors."""
    gc.collect()
    return threading.active_count(), len(os.listdir("/dev/fd"))


def is_back(before: tuple[int, int]) -> bool:
    return all(now <= then for now, then in zip(left(), before, strict=True))


def check(before: tuple[int, int]) -> None:
    assert is_back(before), f"threads and descriptors are {left()}, after an app that was closed {before}"


def in_threads() -> None:
    use(close=True)
    before = left()
    for _ in range(APPS):
        use(close=False)
    end = time.monotonic() + SECONDS
    while not is_back(before) and time.monotonic() < end:
        time.sleep(0.05)
    check(before)


async def on_a_loop() -> None:
    await use_async(close=True)
    await asyncio.sleep(0.5)
    before = left()
    for _ in range(APPS):
        await use_async(close=False)
    end = time.monotonic() + SECONDS
    while not is_back(before) and time.monotonic() < end:  # noqa: ASYNC110
        await asyncio.sleep(0.05)
    check(before)


with warnings.catch_warnings(record=True) as reported:
    warnings.simplefilter("always")
    if sys.argv[2] == "sync":
        in_threads()
    else:
        asyncio.run(on_a_loop())
dropped = [each for each in reported if "was dropped without close(): it is closed now" in str(each.message)]
assert len(dropped) == APPS, [str(each.message) for each in reported]
