"""The database threads: group commit, deadlines, and requests that do not affect each other."""

import asyncio
import fcntl
import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.sqlite.conftest import Connect, Open
from tests.support.seed import enqueue_one, new_job
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.errors import KeyConflict, StoreUnavailable
from windlass.store.sqlite.address import Driver, connection_class
from windlass.store.sqlite.connection.write_thread import WriteThread
from windlass.store.sqlite.connection.write_turn import WriteTurn
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.store import SqliteStore
from windlass.store.sqlite.verbs.enqueue import enqueue


class Blocker:
    """Blocks the write thread inside of a write until it is released."""

    def __init__(self, store: SqliteStore) -> None:
        self._inside, self._go = threading.Event(), threading.Event()
        self._call = asyncio.create_task(store._threads.write(lambda db: self._wait(), None))

    def _wait(self) -> None:
        self._inside.set()
        assert self._go.wait(30)

    async def started(self) -> "Blocker":
        await asyncio.to_thread(self._inside.wait, 30)
        return self

    async def release(self) -> None:
        self._go.set()
        await self._call


@contextmanager
def turn_held(path: Path) -> Iterator[None]:
    """The turn lock of a database, held by the test in place of another process."""
    file = os.open(f"{path}-turn", os.O_CREAT | os.O_RDWR)
    try:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield
    finally:
        os.close(file)


async def commits(store: SqliteStore, path: Path, connects: Connect) -> "Commits":
    await store.migrate()
    return Commits(path, connects)


class Commits:
    """Counts commits in the write-ahead log; its own connection keeps the log from being cleared away."""

    def __init__(self, path: Path, connects: Connect) -> None:
        self._connection = connects()
        self._wal = Path(f"{path}-wal")
        self._page = int(self._connection.rows("PRAGMA page_size")[0][0])

    def so_far(self) -> int:
        """A commit is a frame of the log whose header holds the size of the database; others hold zero."""
        log = self._wal.read_bytes()[32:]
        frames = range(0, len(log), 24 + self._page)
        return sum(1 for at in frames if int.from_bytes(log[at + 4 : at + 8], "big"))

    def close(self) -> None:
        self._connection.close()


async def test_whatever_is_waiting_goes_into_one_commit(opens: Open, path: Path, connects: Connect) -> None:
    store = opens()
    counter = await commits(store, path, connects)
    blocker = await Blocker(store).started()
    before = counter.so_far()
    calls = [asyncio.create_task(enqueue_one(store)) for _ in range(50)]
    await asyncio.sleep(0)
    await blocker.release()
    ids = await asyncio.gather(*calls)
    assert len(set(ids)) == 50
    assert None not in await store.operator.get(ids)
    assert counter.so_far() - before == 1
    counter.close()


async def test_one_that_fails_does_not_hurt_the_others_of_its_group(opens: Open) -> None:
    store = opens()
    blocker = await Blocker(store).started()
    bad = new_job(payload="\ud800")
    good = new_job()
    half = new_job(id=good.id.replace("-7", "-4", 1))
    calls = [asyncio.create_task(store.jobs.enqueue(jobs)) for jobs in ([good], [half, bad], [new_job()])]
    await asyncio.sleep(0)
    await blocker.release()
    answers = await asyncio.gather(*calls, return_exceptions=True)
    assert [type(each) for each in answers] == [list, UnicodeEncodeError, list]
    assert [job and job.id for job in await store.operator.get([good.id, half.id, bad.id])] == [good.id, None, None]


async def test_a_call_that_never_had_its_turn_is_certain_that_nothing_was_done(opens: Open, path: Path) -> None:
    store = opens()
    await store.migrate()
    job = new_job()
    with turn_held(path), pytest.raises(StoreUnavailable, match=r"did not answer within 0\.05 s") as refused:
        await store.with_timeout(0.05).jobs.enqueue([job])
    assert refused.value.maybe_done is False
    await enqueue_one(store)
    assert await store.operator.get([job.id]) == [None], "and it stays so when the turn comes"


async def test_a_call_that_waits_behind_another_is_certain_too(opens: Open) -> None:
    store = opens()
    blocker = await Blocker(store).started()
    job = new_job()
    with pytest.raises(StoreUnavailable) as refused:
        await store.with_timeout(0.05).jobs.enqueue([job])
    assert refused.value.maybe_done is False
    await blocker.release()
    await enqueue_one(store)
    assert await store.operator.get([job.id]) == [None]


async def test_a_call_that_began_and_did_not_answer_may_have_been_done(opens: Open) -> None:
    store = opens()
    await store.migrate()
    go = threading.Event()
    call = store._threads.write(lambda db: go.wait(30), 0.05)
    with pytest.raises(StoreUnavailable) as refused:
        await call
    assert refused.value.maybe_done is True
    go.set()


async def test_a_call_that_was_cancelled_before_its_turn_is_not_done(opens: Open) -> None:
    store = opens()
    blocker = await Blocker(store).started()
    job = new_job()
    call = asyncio.create_task(store.jobs.enqueue([job]))
    await asyncio.sleep(0)
    call.cancel()
    await asyncio.gather(call, return_exceptions=True)
    await blocker.release()
    await enqueue_one(store)
    assert await store.operator.get([job.id]) == [None]


async def test_a_deadline_in_time_changes_nothing(opens: Open) -> None:
    id_ = await enqueue_one(opens(deadline=30))
    assert id_


async def test_a_closed_store_says_so_at_once(opens: Open) -> None:
    store = opens()
    await enqueue_one(store)
    await store.close()
    for verb in (enqueue_one(store), store.operator.counts()):
        with pytest.raises(StoreUnavailable, match="closed"):
            await verb


async def test_closing_finishes_what_was_waiting_and_may_be_repeated(opens: Open) -> None:
    store = opens()
    call = asyncio.create_task(enqueue_one(store))
    await asyncio.sleep(0)
    await asyncio.gather(store.close(), store.close())
    assert await call
    await store.close()


async def test_a_thread_outlives_a_database_that_could_not_be_opened(tmp_path: Path, driver: Driver) -> None:
    """What is wrong with the folder today may be right tomorrow."""
    path = tmp_path / "not yet" / "jobs.db"
    turn = WriteTurn(tmp_path / "jobs.db", first=True)
    thread = WriteThread(path, lambda: connection_class(driver)(path, synchronous="NORMAL", writes=True), turn)
    with pytest.raises(StoreUnavailable, match="cannot be opened"):
        await thread.run(lambda connection: None)
    path.parent.mkdir()
    assert await thread.run(lambda connection: connection.rows("SELECT 1")) == [(1,)]
    await thread.close()


async def test_hand_ins_that_wait_together_are_done_as_one(opens: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    store = opens()
    blocker = await Blocker(store).started()
    sizes: list[int] = []

    def counted(db: Db, jobs: Sequence[NewJob]) -> list[Enqueued]:
        sizes.append(len(jobs))
        return enqueue(db, jobs)

    monkeypatch.setattr("windlass.store.sqlite.roles.enqueue", counted)
    hands = [[new_job() for _ in range(size)] for size in (1, 2, 3)]
    calls = [asyncio.create_task(store.jobs.enqueue(jobs)) for jobs in hands]
    await asyncio.sleep(0)
    await blocker.release()
    answers = await asyncio.gather(*calls)
    assert sizes == [6]
    assert [[answer.id for answer in some] for some in answers] == [[job.id for job in jobs] for jobs in hands]


async def test_one_refusal_among_hand_ins_that_wait_together_is_its_own(opens: Open) -> None:
    store = opens()
    (held,) = await store.jobs.enqueue([new_job(idempotency_key="k")])
    blocker = await Blocker(store).started()
    rude = new_job(idempotency_key="k", on_conflict=OnConflict.RAISE)
    hands = [[new_job()], [new_job(), rude], [new_job(idempotency_key="k")], [new_job()]]
    calls = [asyncio.create_task(store.jobs.enqueue(jobs)) for jobs in hands]
    await asyncio.sleep(0)
    await blocker.release()
    first, refused, existing, last = await asyncio.gather(*calls, return_exceptions=True)
    assert isinstance(refused, KeyConflict)
    assert existing == [Enqueued(held.id, existing=True)]
    assert first == [Enqueued(hands[0][0].id)]
    assert last == [Enqueued(hands[3][0].id)]
    assert await store.operator.get([hands[1][0].id]) == [None]


async def test_what_one_of_a_group_did_before_it_failed_is_rolled_back(opens: Open) -> None:
    store = opens()
    blocker = await Blocker(store).started()
    half, good = new_job(), new_job()

    def broken_off(db: Db) -> None:
        enqueue(db, [half])
        raise ValueError("half way")

    broken = asyncio.create_task(store._threads.write(broken_off, None))
    whole = asyncio.create_task(store.jobs.enqueue([good]))
    await asyncio.sleep(0)
    await blocker.release()
    with pytest.raises(ValueError, match="half way"):
        await broken
    assert await whole == [Enqueued(good.id)]
    assert await store.operator.get([half.id]) == [None]
