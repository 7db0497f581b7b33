"""Waits for commits share one inotify descriptor for each event loop: closing one stops the loop for 12 ms."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest

from tests.support.seed import enqueue
from windlass.store.open import open_store
from windlass.store.sqlite.connection import commit_watcher


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[int | None]:
    """The descriptors that were made."""
    found: list[int | None] = []
    original = commit_watcher._watch

    def watch(file: Path) -> int | None:
        found.append(original(file))
        return found[-1]

    monkeypatch.setattr(commit_watcher, "_watch", watch)
    return found


async def _see_a_commit(store: Any) -> None:
    """Wait for a commit, and until nothing waits any more."""
    commits = store._threads.commits
    waiting = asyncio.create_task(commits.wait(commits.version(), 10))
    await asyncio.sleep(0)
    poll = commits._loop_watch().poll
    await enqueue(store, 1)
    assert await waiting
    await poll


async def test_waits_one_after_the_other_share_a_descriptor(tmp_path: Path, made: list[int | None]) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    await enqueue(store, 1)
    for _ in range(3):
        await _see_a_commit(store)
    assert len(made) == 1
    await store.close()


async def test_a_descriptor_that_a_handler_closed_is_replaced_and_its_number_left_alone(
    tmp_path: Path, made: list[int | None]
) -> None:
    store = open_store(f"sqlite:///{tmp_path / 'store.db'}")
    await enqueue(store, 1)
    await _see_a_commit(store)
    assert made[0] is not None
    reader, writer = os.pipe()
    os.dup2(reader, made[0])  # closes it, and its number belongs to the handler's pipe
    os.write(writer, b"theirs")
    await _see_a_commit(store)
    assert len(made) == 2
    await store.close()
    assert os.read(made[0], 100) == b"theirs"
    for descriptor in (reader, writer, made[0]):
        os.close(descriptor)
