"""Forks: SQLite's table of locks is copied, so nothing may be open at that moment."""

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

from windlass import App
from windlass.store.sqlite.connection.write_turn import WriteTurn

FORKING = """
import os, sys
from windlass import App

app = App(sys.argv[1])


@app.task
def work(number: int) -> None: ...


work.enqueue(0)
app.jobs.list()
(child_done, tell_parent), (parent_done, tell_child) = os.pipe(), os.pipe()
if (child := os.fork()) == 0:
    work.enqueue(1)
    os.write(tell_parent, b".")
    os.read(parent_done, 1)
    for number in range(20):
        work.enqueue(2)
    os._exit(0)
os.read(child_done, 1)
app.close()  # the last connection, as the kernel sees it: it would delete the log that the child writes
os.write(tell_child, b".")
assert os.waitpid(child, 0)[1] == 0
work.enqueue(3)
app.close()
"""


@pytest.mark.parametrize("driver", ["apsw", "sqlite3"])
def test_what_a_forked_child_enqueues_is_not_lost_when_its_parent_closes(tmp_path: Path, driver: str) -> None:
    address = f"sqlite:///{tmp_path}/jobs.db?driver={driver}"
    subprocess.run([sys.executable, "-c", FORKING, address], check=True, timeout=60)
    app = App(address)
    try:
        assert app.stats.counts().totals["pending"] == 23
    finally:
        app.close()


def test_a_store_goes_on_after_a_fork(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db?durability=relaxed")

    @app.task
    def work(number: int) -> None: ...

    try:
        for number in range(3):
            work.enqueue(number)
            if (child := os.fork()) == 0:
                os._exit(0)
            os.waitpid(child, 0)
        assert app.stats.counts().totals["pending"] == 3
    finally:
        app.close()


def test_a_turn_that_is_closed_twice_closes_no_other_files(tmp_path: Path) -> None:
    turn = WriteTurn(tmp_path / "jobs.db", first=False)
    turn.close()
    files = [os.open(tmp_path / str(number), os.O_CREAT | os.O_RDWR) for number in range(4)]
    turn.close()
    del turn
    gc.collect()
    assert [os.fstat(file).st_size for file in files] == [0] * 4, "one of them is closed"
    for file in files:
        os.close(file)
