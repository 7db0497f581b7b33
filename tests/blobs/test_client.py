"""Large payloads and results at the client: stored before the job is, fetched whole, and not left behind."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.blobs.files import MEGABYTE, blobs, folders
from tests.client.labour import Labour, only_job, payload_of, total
from windlass import (
    App,
    BlobUnavailable,
    ConfigError,
    EnqueueFailed,
    EnqueueUnknown,
    NewJob,
    PayloadTooLarge,
    StoreUnavailable,
    Task,
    TaskSet,
)
from windlass.blobs.directory import shard_of
from windlass.blobs.offload import Offload
from windlass.core.codec import INLINE_LIMIT
from windlass.core.ids import new_id
from windlass.core.jobs.job import Enqueued
from windlass.core.reference import MAX_BLOB_SIZE
from windlass.store.contract import Store
from windlass.testing import sandbox

TEXT = "ü" * MEGABYTE
FRAME = len('{"text":""}')


@pytest.fixture
def task(app: App) -> Task[[str], str, str]:
    @app.task(type="t")
    def task(text: str) -> str: ...  # type: ignore[empty-body]

    return task


def settle_large(app: App, labour: Labour, text: str) -> None:
    """The one job returns this JSON, which is offloaded as a worker does."""
    offload = app.offload()
    assert offload is not None
    labour.complete(offload.keep(only_job(app).id, "result", text))


def test_a_large_payload_is_kept_in_the_folder_and_got_whole(
    app: App, task: Task[[str], str, str], root: Path
) -> None:
    handle = task.enqueue(TEXT)
    assert payload_of(app) == {"text": TEXT}
    (path,) = blobs(root)
    assert path.parent.name == handle.id
    assert json.loads(path.read_text()) == {"text": TEXT}


async def test_the_async_face_does_the_same_and_never_blocks_the_loop(
    app: App, task: Task[[str], str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[str] = []
    keep, fetch = Offload.keep, Offload.fetch

    def noting(call: Callable[..., Any]) -> Callable[..., Any]:
        def noted(*args: Any) -> Any:
            threads.append(threading.current_thread().name)
            return call(*args)

        return noted

    monkeypatch.setattr(Offload, "keep", noting(keep))
    monkeypatch.setattr(Offload, "fetch", noting(fetch))
    handle = await task.aenqueue(TEXT)
    assert (await app.jobs.aget(handle.id)).payload == {"text": TEXT}
    assert len(threads) == 2
    assert all(name.startswith("windlass-blobs") for name in threads)


@pytest.mark.parametrize(("size", "files"), [(INLINE_LIMIT, 0), (INLINE_LIMIT + 1, 1)])
def test_what_fits_into_the_row_stays_there(
    app: App, task: Task[[str], str, str], root: Path, size: int, files: int
) -> None:
    task.enqueue("x" * (size - FRAME))
    assert len(blobs(root)) == files
    assert len(payload_of(app)["text"]) == size - FRAME


def test_bytes_count_and_not_characters(task: Task[[str], str, str], root: Path) -> None:
    task.enqueue("ü" * 40_000)
    assert len(blobs(root)) == 1


def test_a_large_result_is_awaited_and_got_whole(
    app: App, task: Task[[str], str, str], labour: Labour, root: Path
) -> None:
    handle = task.enqueue("small")
    settle_large(app, labour, json.dumps(TEXT))
    assert handle.result(timeout=5) == TEXT
    assert app.jobs.get(handle.id).result == TEXT


def test_a_list_and_the_other_verbs_fetch_nothing(app: App, task: Task[[str], str, str], root: Path) -> None:
    handle = task.enqueue(TEXT)
    size = 2 * MEGABYTE + FRAME
    (listed,) = app.jobs.list().items
    for job in (listed, app.jobs.get(handle.id, fetch=False), app.jobs.cancel(handle.id), app.jobs.retry(handle.id)):
        assert set(job.payload) == {"blob"}
        assert job.payload["blob"]["size"] == size
        assert len(job.payload["blob"]["sha256"]) == 64


def test_failures_show_references_in_the_same_form(app: App, task: Task[[str], str, str], labour: Labour) -> None:
    task.enqueue(TEXT)
    labour.fail(ValueError("no"))
    (job,) = app.jobs.failures()
    assert set(job.payload) == {"blob"}


def spoil(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1] + b"!")


def shorten(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(b" ")


TROUBLE: dict[str, Callable[[Path], None]] = {
    "is missing": Path.unlink,
    "its content was altered": spoil,
    "bytes were found": shorten,
}


@pytest.mark.parametrize("problem", TROUBLE)
def test_what_is_not_as_it_was_put_is_said_and_never_given(
    app: App, task: Task[[str], str, str], labour: Labour, root: Path, problem: str
) -> None:
    handle = task.enqueue("small")
    settle_large(app, labour, json.dumps(TEXT))
    (path,) = blobs(root)
    TROUBLE[problem](path)
    with pytest.raises(BlobUnavailable, match=problem) as caught:
        handle.result(timeout=5)
    assert str(caught.value).startswith(f"job {handle.id}: its result cannot be fetched: ")
    assert f"expected {len(json.dumps(TEXT)):,} bytes with sha256 " in str(caught.value)
    result = app.jobs.get(handle.id).result
    assert result["blob"]["size"] == len(json.dumps(TEXT))
    assert problem in result["problem"]


def test_one_byte_more_is_noticed_too(app: App, task: Task[[str], str, str], root: Path) -> None:
    task.enqueue(TEXT)
    lengthen(blobs(root)[0])
    assert "bytes were found" in payload_of(app)["problem"]


def test_an_app_without_blobs_says_that_it_has_none(
    app: App, task: Task[[str], str, str], labour: Labour, tmp_path: Path
) -> None:
    handle = task.enqueue("small")
    settle_large(app, labour, json.dumps(TEXT))
    other = App(app.store)
    try:
        assert "this app has no blob store: give it the same blobs=" in other.jobs.get(handle.id).result["problem"]
    finally:
        other.close()


def test_a_bulk_of_mixed_sizes_is_stored_in_its_order(app: App, task: Task[[str], str, str], root: Path) -> None:
    texts = [str(n) * (200_000 if n % 3 == 0 else 10) for n in range(1, 31)]
    handles = app.enqueue_many([task.job(text) for text in texts])
    assert len(blobs(root)) == 10
    assert [app.jobs.get(handle.id).payload["text"] for handle in handles] == texts


async def test_many_producers_at_once(app: App, task: Task[[str], str, str], root: Path) -> None:
    handles = await asyncio.gather(*(task.aenqueue(str(n) * 200_000) for n in range(10)))
    assert len(blobs(root)) == 10
    jobs = await asyncio.gather(*(app.jobs.aget(handle.id) for handle in handles))
    assert [job.payload["text"] for job in jobs] == [str(n) * 200_000 for n in range(10)]


def test_beyond_the_limit_of_blobs_it_is_refused_with_that_limit(
    app: App, task: Task[[str], str, str], root: Path
) -> None:
    with pytest.raises(PayloadTooLarge, match=f"bytes of JSON, the limit is {MAX_BLOB_SIZE:,}; keep large data"):
        task.enqueue("x" * MAX_BLOB_SIZE)
    with pytest.raises(PayloadTooLarge, match=f"the limit is {MAX_BLOB_SIZE:,}"):
        app.enqueue_many([NewJob(id=new_id(), type="t", payload='"' + "x" * MAX_BLOB_SIZE + '"')])
    assert (total(app), root.exists()) == (0, False)


def test_without_blobs_the_limit_is_the_inline_one_and_the_error_says_what_to_do(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db")
    try:
        with pytest.raises(PayloadTooLarge, match=r"the limit is 65,536; .*App\(blobs=\.\.\.\) or WINDLASS_BLOBS"):
            app.enqueue_many([NewJob(id=new_id(), type="t", payload='"' + "x" * INLINE_LIMIT + '"')])
        assert total(app) == 0
    finally:
        app.close()


def test_more_values_than_fit_into_a_row_are_fine(app: App) -> None:
    @app.task(type="many")
    def many(numbers: list[int]) -> None: ...

    many.enqueue(list(range(100_000)))
    assert payload_of(app) == {"numbers": list(range(100_000))}


def test_a_variable_names_the_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WINDLASS_BLOBS", str(tmp_path / "variable"))
    assert App().blobs == str(tmp_path / "variable")
    assert App(blobs="./given").blobs == str(Path.cwd() / "given")
    monkeypatch.delenv("WINDLASS_BLOBS")
    assert App().blobs is None


def test_making_an_app_does_nothing_and_a_wrong_address_is_said_when_it_is_needed(tmp_path: Path) -> None:
    app = App(f"sqlite:///{tmp_path}/jobs.db", blobs="s3://bucket")
    try:
        assert list(tmp_path.iterdir()) == []
        with pytest.raises(ConfigError, match="unknown blob store 's3'"):
            app.enqueue_many([NewJob(id=new_id(), type="t", payload='"' + "x" * INLINE_LIMIT + '"')])
    finally:
        app.close()


def test_a_waiting_job_may_be_given_a_large_payload_and_a_small_one_again(
    app: App, task: Task[[str], str, str], root: Path
) -> None:
    handle = task.enqueue("small")
    assert set(app.jobs.change(handle.id, payload={"text": TEXT}).payload) == {"blob"}
    assert payload_of(app) == {"text": TEXT}
    app.jobs.change(handle.id, payload={"text": TEXT + "!"})
    assert payload_of(app) == {"text": TEXT + "!"}
    app.jobs.change(handle.id, payload={"text": "small"})
    assert payload_of(app) == {"text": "small"}
    with pytest.raises(PayloadTooLarge, match=f"the limit is {MAX_BLOB_SIZE:,}"):
        app.jobs.change(handle.id, payload={"text": "x" * MAX_BLOB_SIZE})
    assert payload_of(app) == {"text": "small"}


def test_a_task_set_has_the_limit_of_its_app(app: App, root: Path) -> None:
    tasks = TaskSet()

    @tasks.task(type="of.a.set")
    def of_a_set(text: str) -> None: ...

    with pytest.raises(PayloadTooLarge, match="the limit is 65,536"):
        of_a_set.job(TEXT)
    app.include(tasks)
    of_a_set.enqueue(TEXT)
    assert len(blobs(root)) == 1


def test_under_test_everything_stays_in_memory(app: App, root: Path) -> None:
    @app.task(type="twice")
    def twice(text: str) -> str:
        return text * 2

    with sandbox(app) as test:
        handle = twice.enqueue(TEXT)
        test.run_all(raise_errors=True)
        assert handle.result(timeout=5) == TEXT * 2
        assert app.jobs.get(handle.id).payload == {"text": TEXT}
        with pytest.raises(PayloadTooLarge):
            twice.enqueue("x" * MAX_BLOB_SIZE)
    assert not root.exists()


# What is put for nothing.


def test_of_a_job_that_stood_already_nothing_is_left(app: App, task: Task[[str], str, str], root: Path) -> None:
    keyed = task.using(idempotency_key="k")
    first = keyed.enqueue(TEXT)
    assert keyed.enqueue(TEXT + "!").existing
    assert [path.parent.name for path in folders(root) for path in path.iterdir()] == [first.id]


def test_the_same_id_again_spoils_nothing(app: App, task: Task[[str], str, str], root: Path) -> None:
    one = task.using(id=new_id())
    one.enqueue(TEXT)
    assert one.enqueue("other" * 20_000).existing
    assert payload_of(app) == {"text": TEXT}


class Refusing:
    """A store whose `enqueue` fails; certainly nothing is stored, or that is unknown."""

    def __init__(self, store: Store, *, maybe_done: bool) -> None:
        self._store = store
        self._maybe_done = maybe_done
        self.jobs = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._store, name)

    def with_timeout(self, seconds: float) -> "Refusing":
        return self

    async def enqueue(self, jobs: object) -> list[Enqueued]:
        raise StoreUnavailable("away", maybe_done=self._maybe_done)


@pytest.mark.parametrize(("maybe_done", "error", "left"), [(False, EnqueueFailed, 0), (True, EnqueueUnknown, 3)])
async def test_what_was_put_is_taken_back_if_it_is_certain_that_nothing_was_stored(
    app: App, task: Task[[str], str, str], root: Path, maybe_done: bool, error: type[Exception], left: int
) -> None:
    store = await app._ready()
    app._store_handle.adopt(Refusing(store, maybe_done=maybe_done))
    with pytest.raises(error):
        await app.aenqueue_many([task.job(TEXT + str(n)) for n in range(3)] + [task.job("small")])
    await store.close()
    assert len(blobs(root)) == left


def test_one_blob_that_cannot_be_written_stores_nothing_of_the_batch(
    app: App, task: Task[[str], str, str], root: Path
) -> None:
    task.enqueue("warm")
    root.mkdir()
    jobs = [task.job(TEXT) for _ in range(6)]
    (root / shard_of(jobs[4].id)).touch()
    # Another of them may have the same shard.
    first = next(job for job in jobs if shard_of(job.id) == shard_of(jobs[4].id))
    with pytest.raises(EnqueueFailed, match=f"^nothing was stored: job {first.id}: its payload of .* bytes"):
        app.enqueue_many(jobs)
    assert [path.parent for path in blobs(root)] == [root]
    assert total(app) == 1


# Collection.


def test_deleting_a_job_removes_its_blobs(app: App, task: Task[[str], str, str], labour: Labour, root: Path) -> None:
    handle = task.enqueue(TEXT)
    settle_large(app, labour, json.dumps(TEXT))
    kept = task.enqueue(TEXT)
    assert len(blobs(root)) == 3
    app.jobs.delete(handle.id)
    assert [path.name for path in folders(root)] == [kept.id]
    app.jobs.cancel(kept.id)
    assert app.jobs.delete_all(status="cancelled") == 1
    assert blobs(root) == []


def test_a_delete_that_is_refused_removes_nothing(app: App, task: Task[[str], str, str], root: Path) -> None:
    handle = task.enqueue(TEXT)
    with pytest.raises(Exception, match="cannot delete"):
        app.jobs.delete(handle.id)
    assert app.jobs.delete_all(all=True) == 0
    assert payload_of(app) == {"text": TEXT}


def test_a_blob_that_cannot_be_removed_does_not_undo_the_delete(
    app: App, task: Task[[str], str, str], root: Path
) -> None:
    handle = task.enqueue(TEXT)
    (folders(root)[0] / "a folder").mkdir()
    app.jobs.cancel(handle.id)
    app.jobs.delete(handle.id)
    assert total(app) == 0
