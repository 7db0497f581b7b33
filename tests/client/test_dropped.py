"""Apps that are dropped without `close()`: what they had open is closed, and nothing that is in use."""

import asyncio
import gc
import os
import subprocess
import sys
import weakref
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass import App, JobCancelled
from windlass.client.handle import Handle

SCRIPT = Path(__file__).with_name("dropped_apps.py")


@pytest.mark.parametrize("way", ["sync", "async"])
def test_threads_and_descriptors_come_back(address: str, way: str) -> None:
    ran = subprocess.run([sys.executable, str(SCRIPT), address, way], capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr


@pytest.fixture(autouse=True)
def only_what_the_test_makes() -> Iterator[None]:
    """Is collected."""
    gc.freeze()
    yield
    gc.unfreeze()


def collect() -> None:
    for _ in range(3):  # a handle is not looked at, so what it alone holds is found the next time
        gc.collect()


def test_a_handle_keeps_its_app(address: str) -> None:
    def enqueue() -> tuple[Handle[None], weakref.ref[App]]:
        app = App(address)

        @app.task(type="t")
        def task() -> None: ...

        return task.enqueue(), weakref.ref(app)

    handle, ref = enqueue()
    collect()
    with pytest.raises(TimeoutError):
        handle.result(timeout=0)
    app = ref()
    assert app is not None
    app.close()


async def test_a_waiter_keeps_the_app(address: str) -> None:
    """The app is held by nothing but the call itself."""

    async def enqueue() -> tuple[str, asyncio.Task[None], weakref.ref[App]]:
        app = App(address)

        @app.task(type="t")
        async def task() -> None: ...

        handle = await task.aenqueue()
        return handle.id, asyncio.create_task(handle.aresult()), weakref.ref(app)

    id_, waiting, ref = await enqueue()
    await asyncio.sleep(0)
    collect()
    app = ref()
    assert app is not None
    other = App(address)
    await other.jobs.acancel(id_)
    with pytest.raises(JobCancelled):
        await waiting
    await other.aclose()
    await app.aclose()


def test_a_forked_child_leaves_what_its_parent_has_open(address: str) -> None:
    app = App(address)

    @app.task(type="t")
    def task() -> None: ...

    task.enqueue()
    if not (pid := os.fork()):
        try:
            del app, task
            collect()
            os._exit(0)
        finally:
            os._exit(99)
    assert os.waitpid(pid, 0)[1] == 0
    task.enqueue()
    app.close()
