"""A writer that is killed at any step leaves no half blob, and what it leaves is swept."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.blobs.files import blobs, folders, grow_old
from tests.services.parts import Listener
from windlass.blobs.contract import BlobFailed, BlobKey
from windlass.blobs.directory import Directory
from windlass.coordinator.duties import OLD_SECONDS, Sweep
from windlass.core.ids import new_id
from windlass.store.contract import Store

NAME = "payload.0001020304050607"
DATA = b"x" * 200_000

STEPS = [
    *("mkdir 1", "fsync 1", "mkdir 2", "mkdir 3", "open", "write", "fsync 2", "rename"),
    *("fsync 3", "fsync 4", "fsync 5"),
]
AFTER_ITS_NAME = STEPS.index("rename") + 1

WRITER = """
import os, signal, sys
from windlass.blobs.contract import BlobKey
from windlass.blobs.directory import Directory

root, job, name, call, number = sys.argv[1:]
real, left = getattr(os, call), [int(number)]

def killing(*args, **kwargs):
    if call != "open" or args[1] & os.O_CREAT:
        left[0] -= 1
        if not left[0]:
            if call == "write":
                real(args[0], bytes(args[1])[:1000])
            os.kill(os.getpid(), signal.SIGKILL)
    return real(*args, **kwargs)

setattr(os, call, killing)
Directory(root).put(BlobKey(job, name), b"x" * 200_000)
"""


def killed_before(step: str, root: Path, job: str) -> None:
    call, _, number = step.partition(" ")
    words = [sys.executable, "-c", WRITER, str(root), job, NAME, call, number or "1"]
    assert subprocess.run(words, env=os.environ, check=False).returncode == -signal.SIGKILL


@pytest.mark.parametrize("step", STEPS)
async def test_a_killed_writer_leaves_all_or_nothing_and_a_sweep_clears_it(
    store: Store, root: Path, step: str
) -> None:
    job = new_id()
    killed_before(step, root, job)
    directory = Directory(str(root))
    if STEPS.index(step) < AFTER_ITS_NAME:
        with pytest.raises(BlobFailed, match="is missing"):
            directory.get(BlobKey(job, NAME), len(DATA))
    else:
        assert directory.get(BlobKey(job, NAME), len(DATA)) == DATA
    sweep = Sweep(store, directory, Listener())
    before = blobs(root)
    await sweep.run()
    assert blobs(root) == before, "what is fresh may belong to a job that is just being stored"
    grow_old(root, OLD_SECONDS + 60)
    await sweep.run()
    assert (blobs(root), folders(root)) == ([], [])


def test_a_folder_that_is_cleared_away_under_a_writer_is_made_again(root: Path) -> None:
    job = new_id()

    class Raced(Directory):
        tries = 0

        def _put(self, key: BlobKey, data: bytes) -> None:
            self.tries += 1
            if self.tries < 3:
                raise FileNotFoundError
            super()._put(key, data)

    raced = Raced(str(root))
    raced.put(BlobKey(job, NAME), DATA)
    assert raced.get(BlobKey(job, NAME), len(DATA)) == DATA
