"""What is said to be not stored is not stored, and what may be stored is kept whole, whichever step fails."""

import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest
import redis.exceptions

from tests.blobs.files import blobs
from tests.redis.faulty_wire import FaultyWire
from tests.support.chains import follow_on
from tests.support.seed import new_job
from tests.support.servers.redis_places import redis_place
from windlass import App, EnqueueFailed, EnqueueUnknown
from windlass.core.jobs.idempotency import OnConflict
from windlass.core.jobs.job import NewJob
from windlass.errors import KeyConflict
from windlass.store.redis.store import RedisStore
from windlass.store.redis.verbs import large_batch as bulk

LARGE = '"' + "x" * 70_000 + '"'
MAX_STEPS = 60

REFUSED = redis.exceptions.OutOfMemoryError("command not allowed when used memory > 'maxmemory'.")
CUT = redis.exceptions.ConnectionError("Connection closed by server.")


class Fault(NamedTuple):
    error: Exception
    done: bool = False


FAULTS = {"refused": Fault(REFUSED), "cut after it was done": Fault(CUT, done=True)}


class Place(NamedTuple):
    """An app with a blob store, and the wire under it."""

    app: App
    store: RedisStore
    wire: FaultyWire
    blobs: Path

    async def enqueue(self, jobs: list[NewJob]) -> None:
        await self.app._enqueue_jobs(jobs, [Any] * len(jobs))


@contextlib.asynccontextmanager
async def place_in(folder: Path) -> AsyncIterator[Place]:
    """A store of its own, in which there is nothing yet."""
    app = App(redis_place(folder), blobs=str(folder / "blobs"))
    store = app._store_handle.connect()
    assert isinstance(store, RedisStore)
    await store.migrate()
    wire = FaultyWire(store._server.wire)
    store._server.wire = wire
    yield Place(app, store, wire, folder / "blobs")
    await app.aclose()


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    async with place_in(tmp_path) as made:
        yield made


@pytest.fixture(autouse=True)
def no_flushes(monkeypatch: pytest.MonkeyPatch) -> None:
    """The power is not cut here: blobs need not wait for the disk."""
    monkeypatch.setattr(os, "fsync", lambda file: None)


def _job(queue: str, **fields: Any) -> NewJob:
    return new_job(queue=queue, payload=LARGE, **fields)


def _chain(*queues: str) -> list[NewJob]:
    return follow_on([_job(queue) for queue in queues])


WAYS: dict[str, Callable[[], list[NewJob]]] = {
    "one": lambda: [_job("a")],
    "several queues": lambda: [_job("abc"[n % 3], idempotency_key=str(n)) for n in range(4)],
    "one id twice": lambda: [(first := _job("a")), msgspec.structs.replace(first, queue="b")],
    "a chain": lambda: _chain("a", "b", "a"),
}


@pytest.mark.parametrize("portion", [500, 1], ids=["at once", "staged"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
async def test_whichever_step_of_an_enqueue_fails_what_is_reported_is_true(
    fault: Fault, way: str, portion: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_WEIGHT", portion)
    step, failed = 0, True
    while failed:
        step += 1
        assert step < MAX_STEPS
        (folder := tmp_path / str(step)).mkdir()
        async with place_in(folder) as place:
            jobs = WAYS[way]()
            place.wire.fail_at(step, fault.error, done=fault.done)
            reported = await _reported(place, jobs)
            failed = place.wire.recover()
            assert failed or reported is None
            await _check(place, jobs, reported)
    assert step > 2


async def _reported(place: Place, jobs: list[NewJob]) -> Exception | None:
    try:
        await place.enqueue(jobs)
    except (EnqueueFailed, EnqueueUnknown, KeyConflict) as error:
        return error
    return None


async def _check(place: Place, jobs: list[NewJob], reported: Exception | None) -> None:
    """What there is agrees with what was told, and the same jobs can be enqueued again."""
    ids = [job.id for job in jobs]
    if isinstance(reported, EnqueueFailed | KeyConflict):
        assert not any(await place.store.operator.get(ids)), reported
        assert not [path for path in blobs(place.blobs) if path.parent.name in ids]
    elif reported is not None:
        assert isinstance(reported, EnqueueUnknown)
        assert reported.ids == ids
        await _check_whole(place, ids)
    else:
        assert all(await place.store.operator.get(ids))
    await place.enqueue(jobs)
    assert all(await place.store.operator.get(ids))
    await _check_whole(place, ids)


async def _check_whole(place: Place, ids: list[str]) -> None:
    """Those that are there have their payloads."""
    for id_ in ids:
        (job,) = await place.store.operator.get([id_])
        if job is not None:
            assert (await place.app.jobs.aget(id_)).payload == LARGE[1:-1]


@pytest.mark.parametrize("portion", [500, 1], ids=["at once", "staged"])
async def test_a_key_that_is_taken_in_the_second_queue_after_the_first_has_stored_is_no_certainty(
    place: Place, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_WEIGHT", portion)
    jobs = [_job("a"), _job("a"), _job("b", idempotency_key="k", on_conflict=OnConflict.RAISE), _job("b")]
    rival = new_job(queue="b", idempotency_key="k")
    raced = False

    async def overtake(script: str) -> None:
        nonlocal raced
        if script in ("enqueue", "commit_batch") and not raced:
            raced = True
            await place.store.jobs.enqueue([rival])

    place.wire.before = overtake
    reported = await _reported(place, jobs)
    assert raced
    if portion == 1:
        assert reported is None, "what is committed is not refused any more: the answer is the other job"
        return
    assert isinstance(reported, EnqueueUnknown)
    assert "'k'" in str(reported)
    assert rival.id in str(reported)
    await _check_whole(place, [job.id for job in jobs])
    found = await place.store.operator.get([job.id for job in jobs])
    assert [each is not None for each in found] == [True, True, False, False]


@pytest.mark.parametrize("portion", [500, 1], ids=["at once", "staged"])
async def test_a_queue_that_is_closed_after_another_has_stored_is_no_certainty(
    place: Place, portion: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bulk, "MAX_WEIGHT", portion)
    jobs = [_job("a"), _job("a"), _job("b"), _job("b")]

    async def close(script: str) -> None:
        if script in ("enqueue", "commit_batch"):
            place.wire.before = None
            await place.store.queues.close("b")

    place.wire.before = close
    reported = await _reported(place, jobs)
    assert isinstance(reported, EnqueueUnknown)
    assert "queue 'b' is closed" in str(reported)
    await _check_whole(place, [job.id for job in jobs])
    found = await place.store.operator.get([job.id for job in jobs])
    assert [each is not None for each in found] == [True, True, False, False]
    await place.store.queues.open("b")
    await place.enqueue(jobs)
    assert all(await place.store.operator.get([job.id for job in jobs]))
