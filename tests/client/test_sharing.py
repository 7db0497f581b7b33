"""One app in many threads, on many loops, and over a fork."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tests.client.labour import total
from windlass import App

THREADS = 8


def test_eight_threads_enqueue_at_once_through_one_store(app: App, address: str) -> None:
    others = set(threading.enumerate())  # of earlier tests in this process

    @app.task
    def work(thread: int, number: int) -> None: ...

    together = threading.Barrier(THREADS)

    def enqueue_jobs(thread: int) -> list[str]:
        together.wait()
        return [work.enqueue(thread, number).id for number in range(25)]

    with ThreadPoolExecutor(THREADS) as pool:
        ids = [id_ for some in pool.map(enqueue_jobs, range(THREADS)) for id_ in some]
    assert len(set(ids)) == total(app) == THREADS * 25
    names = [thread.name for thread in threading.enumerate() if thread not in others]
    ours = [name for name in names if name.startswith("windlass-")]
    # A file needs threads that may wait for it, PostgreSQL a loop; to Redis each thread speaks for itself.
    expected = {"sqlite": ["windlass-reader", "windlass-writer"], "redis": []}
    assert sorted(ours) == expected.get(address.partition(":")[0], ["windlass-portal"])


def test_loops_in_several_threads_share_an_app(app: App) -> None:
    @app.task
    def work(number: int) -> None: ...

    together = threading.Barrier(THREADS)

    async def enqueue_jobs(thread: int) -> None:
        await asyncio.gather(*(work.aenqueue(thread * 10 + number) for number in range(10)))

    def run(thread: int) -> None:
        together.wait()
        asyncio.run(enqueue_jobs(thread))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(run, range(THREADS)))
    assert total(app) == THREADS * 10


def test_one_loop_after_another_uses_the_same_app(app: App) -> None:
    @app.task
    async def work(number: int) -> None: ...

    async def enqueue_jobs(number: int) -> None:
        await work.aenqueue(number)

    for number in range(3):
        asyncio.run(enqueue_jobs(number))
    work.enqueue(3)
    assert total(app) == 4


FORK = """
import os, sys, warnings
from windlass import App

app = App(sys.argv[1])

@app.task
def work(number: int) -> None: ...

work.enqueue(0)
children = []
for number in range(1, 4):
    child = os.fork()
    if child == 0:
        try:
            work.enqueue(number)
            assert work.using(id=app.jobs.list().items[0].id).enqueue(number).existing
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    work.enqueue(10 * number)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
work.enqueue(99)
print(codes, sum(app.stats.counts().totals.values()))
print(sorted(job.payload["number"] for job in app.jobs.list().items))
app.close()
"""

EXIT = """
import os, sys
from windlass import App

app = App(sys.argv[1])

@app.task
def work(number: int) -> None: ...

work.enqueue(0)
child = os.fork()
work.enqueue(1)
if child == 0:
    sys.exit(0)  # an ordinary end: everything is torn down, the parent's connection included
code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
work.enqueue(2)
print(code, sum(app.stats.counts().totals.values()))
app.close()
"""


def script(text: str, address: str) -> str:
    """What a program prints that must end well."""
    run = subprocess.run(
        [sys.executable, "-c", text, address], capture_output=True, text=True, check=False, timeout=60
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_children_of_a_program_that_used_its_app_enqueue_too(address: str) -> None:
    codes, numbers = script(FORK, address).splitlines()
    assert codes == "[0, 0, 0] 8"
    assert numbers == "[0, 1, 2, 3, 10, 20, 30, 99]"


def test_a_child_that_ends_leaves_its_parents_store_alone(address: str) -> None:
    assert script(EXIT, address).strip() == "0 4"


def test_importing_a_module_with_tasks_makes_no_file_and_no_thread(tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        "from windlass import App, Context\n"
        "app = App('sqlite:///jobs.db')\n"
        "app.queue('mail', max_attempts=3)\n"
        "@app.task(queue='mail')\n"
        "async def welcome(ctx: Context, user: int) -> str: ...\n"
    )
    text = "import shop, threading; print(threading.active_count(), shop.app.registry.types)"
    run = subprocess.run([sys.executable, "-c", text], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "1 ('welcome',)"
    assert {entry.name for entry in tmp_path.iterdir()} <= {"shop.py", "__pycache__"}
