"""One app on PostgreSQL in many threads, on one loop after another, and over a fork: not a word, and nothing left."""

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.support.processes import until
from tests.support.servers.address import Address
from tests.support.stores import postgres_url
from windlass import App

THREADS = 6
OURS = (
    "SELECT 1 FROM pg_stat_activity WHERE starts_with(application_name, 'windlass') AND datname = current_database()"
)


@pytest.fixture
def url(tmp_path: Path) -> str:
    return postgres_url(tmp_path)


def no_connection_is_left(url: str) -> None:
    until(lambda: not Address(url).execute(OURS), "every connection is given back")


BEGIN = """
import asyncio, os, sys
from windlass import App

app = App(sys.argv[1])

@app.task
def work(number: int) -> None: ...

async def enqueue_jobs(number):
    await asyncio.gather(*(work.aenqueue(number) for _ in range(3)))
    await work.aenqueue(number)  # in the shadow of the last hint: it is told when the loop ends
"""

LOOPS = f"""{BEGIN}
for number in range(3):
    asyncio.run(enqueue_jobs(number))
work.enqueue(3)
print(app.stats.counts().totals["pending"])
app.close()
asyncio.run(enqueue_jobs(4))
"""

# With one connection only: a second that was just being opened when the loop stopped would stay open.
RUDE = f"""{BEGIN.replace("sys.argv[1]", "sys.argv[1] + '?connections=1'")}
for number in range(3):
    loop = asyncio.new_event_loop()
    loop.run_until_complete(enqueue_jobs(number))
    loop.close()
print(app.stats.counts().totals["pending"])
app.close()
"""

FORK = f"""{BEGIN}
work.enqueue(0)
children = []
for number in range(1, 4):
    child = os.fork()
    if child == 0:
        code = 1
        try:
            work.enqueue(number)
            asyncio.run(enqueue_jobs(number))
            code = 0
        finally:
            os._exit(code) if number == 1 else sys.exit(code)  # some end in good order: all is torn down
    work.enqueue(10 * number)
    children.append(child)
codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
work.enqueue(99)
print(codes, app.stats.counts().totals["pending"])
app.close()
"""

FORK_IN_LOOP = f"""{BEGIN}
async def main():
    await enqueue_jobs(0)
    child = os.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", "pass"])
    os.waitpid(child, 0)
    await enqueue_jobs(1)

asyncio.run(main())
print(app.stats.counts().totals["pending"])
app.close()
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [(LOOPS, "13"), (RUDE, "12"), (FORK, "[0, 0, 0] 20"), (FORK_IN_LOOP, "8")],
    ids=["loops", "loops that just stop", "forks", "a fork in a loop"],
)
def test_a_program_ends_without_a_word_and_gives_every_connection_back(url: str, text: str, said: str) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", text, url],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert run.stderr == ""
    assert (run.returncode, run.stdout.strip()) == (0, said)
    no_connection_is_left(url)


def test_loops_and_blocking_calls_in_several_threads_share_an_app(url: str) -> None:
    app = App(url)

    @app.task
    def work(number: int) -> None: ...

    together = threading.Barrier(THREADS)

    async def enqueue_jobs(thread: int) -> None:
        await asyncio.gather(*(work.aenqueue(thread * 10 + number) for number in range(10)))

    def run(thread: int) -> None:
        together.wait()
        if thread % 2:
            asyncio.run(enqueue_jobs(thread))
        else:
            for number in range(10):
                work.enqueue(thread * 10 + number)

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(run, range(THREADS)))
    assert app.stats.counts().totals["pending"] == THREADS * 10
    app.close()
    no_connection_is_left(url)
