"""A process that hands a job in through apsw, and dies once it was told that the job is stored.

    python -m tests.sqlite.losing FILE alone|guarded|unguarded

In the midst of the enqueue another process writes. It is locked out, unless other code of this process has read the
same file with sqlite3 meanwhile: closing it dropped the lock. `unguarded` is what happens without the refusal.
"""

import asyncio
import contextlib
import os
import signal
import sqlite3
import subprocess
import sys

from windlass.core.ids import new_id
from windlass.core.jobs.job import NewJob
from windlass.errors import ConfigError
from windlass.store.open import open_store
from windlass.store.sqlite.connection.libraries import Libraries
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.store import SqliteStore
from windlass.store.sqlite.verbs.enqueue import enqueue

ANOTHER = """
import sqlite3, sys
theirs = sqlite3.connect(sys.argv[1], timeout=0)
theirs.execute("INSERT INTO notes VALUES ('a note')")
theirs.commit()
theirs.close()
"""


def read(path: str) -> None:
    """What any other code of a process may do at any moment."""
    with contextlib.closing(sqlite3.connect(path)) as reader:
        reader.execute("SELECT count(*) FROM notes").fetchall()


async def main(path: str, mode: str) -> None:
    store = open_store(f"sqlite:///{path}")
    assert isinstance(store, SqliteStore)
    job = NewJob(id=new_id(), type="t", payload="{}")

    def work(db: Db) -> None:
        enqueue(db, [job])
        if mode != "alone":
            read(path)
        written = subprocess.run([sys.executable, "-c", ANOTHER, path], capture_output=True, check=False)
        print("wrote" if written.returncode == 0 else "locked out")

    try:
        await store._threads.write(work, None)
    except ConfigError as error:
        print(f"refused: {error}")
        await store.close()
        return
    print(f"accepted {job.id}", flush=True)
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    if sys.argv[2] == "unguarded":
        Libraries.refuse = lambda self, database: None  # type: ignore[method-assign]
    asyncio.run(main(*sys.argv[1:]))
