"""A program that gevent has patched, before or after it imports its app: greenlets use the app at once."""

import contextlib
import os
import sys
from pathlib import Path

import gevent
from gevent import monkey

if sys.argv[1] == "before":
    monkey.patch_all()

import shop  # type: ignore[import-not-found]

if sys.argv[1] == "after":
    monkey.patch_all()

AT_ONCE = 12
LARGE = "x" * 100_000
"""Kept as a blob."""


def walk(number: int) -> None:
    """Everything that a web request may do."""
    handle = shop.add.enqueue(number, 1)
    assert handle.result(timeout=30) == number + 1
    pair = shop.app.enqueue_many([shop.add.job(number, 2), shop.add.job(number, 3)])
    assert [each.result() for each in pair] == [number + 2, number + 3]
    assert shop.app.jobs.get(handle.id).status == "completed"
    later = shop.add.using(delay=3600).enqueue(0, 0)
    assert shop.app.jobs.cancel(later.id)
    assert shop.app.jobs.get(later.id).status == "cancelled"


def offload_payloads() -> None:
    """Blobs are written in threads, several at once."""
    later = shop.block.using(delay=3600)
    for handle in shop.app.enqueue_many([later.job(gate=LARGE) for _ in range(6)]):
        assert shop.app.jobs.get(handle.id).payload == {"gate": LARGE}
        assert shop.app.jobs.cancel(handle.id)


def fork() -> None:
    """A child has neither the thread nor the connections of its parent."""
    child = os.fork()
    if not child:
        walk(100)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    assert status == 0


def wait_for_another() -> None:
    """The gate is opened by a greenlet that runs only while this one waits."""
    handle = shop.block.enqueue(gate="gate")
    opener = gevent.spawn(Path("gate").touch)
    assert handle.result() == "opened"
    opener.get()


def give_up() -> None:
    """A time limit of gevent's ends a wait, and the app goes on."""
    handle = shop.add.using(delay=3600).enqueue(0, 0)
    with contextlib.suppress(gevent.Timeout), gevent.Timeout(0.05):
        handle.result()
    assert shop.app.jobs.cancel(handle.id)


def all_at_once() -> None:
    started = [gevent.spawn(walk, number) for number in range(AT_ONCE)]
    started += map(gevent.spawn, [offload_payloads, wait_for_another, give_up])
    gevent.joinall(started, raise_error=True)


all_at_once()
walk(0)
assert not any(result_waiter._waits for result_waiter in shop.app._store_handle._waiters.values()), (
    "a wait that was given up goes on"
)
fork()
shop.app.close()
walk(0)  # it is opened again
shop.app.close()
