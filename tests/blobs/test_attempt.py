"""A runner fetches an offloaded payload before the handler starts, and offloads large results after it."""

import asyncio
import json
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.blobs.files import MEGABYTE, blobs, make_file
from tests.services.parts import claimed, one_work
from windlass import App, Context
from windlass.blobs.offload import Offload
from windlass.core.codec import INLINE_LIMIT, decode
from windlass.core.ids import new_id
from windlass.core.jobs.outcome import Done, Outcome, Raised
from windlass.core.reference import MAX_BLOB_SIZE, Reference, parse_reference
from windlass.worker.handlers.attempt import run_async, run_sync
from windlass.worker.handlers.start import run_attempt
from windlass.worker.handlers.work import Halt, Work

KINDS = ["async", "def"]


@pytest.fixture
def large(app: App) -> Offload:
    found = app.offload()
    assert found is not None
    return found


def make(app: App, kind: str, deed: Callable[[str, Context], Any]) -> None:
    async def on_loop(text: str, ctx: Context) -> Any:
        return deed(text, ctx)

    def in_thread(text: str, ctx: Context) -> Any:
        return deed(text, ctx)

    app.task(type="t")(on_loop if kind == "async" else in_thread)


async def run(work: Work) -> Outcome:
    return await run_async(work) if work.definition.is_async else run_sync(work)


def work_with(app: App, payload: str, id_: str | None = None) -> Work:
    return one_work(app, claimed(id=id_ or new_id(), payload=payload))


def offloaded(large: Offload, text: str) -> tuple[str, str]:
    """An id, and what its row holds."""
    id_ = new_id()
    return large.keep(id_, "payload", json.dumps({"text": text})), id_


@pytest.mark.parametrize("kind", KINDS)
async def test_the_handler_and_its_context_see_the_payload_itself(app: App, large: Offload, kind: str) -> None:
    seen: list[Any] = []
    make(app, kind, lambda text, ctx: seen.extend([text, ctx.job.payload]))
    outcome = await run(work_with(app, *offloaded(large, "x" * MEGABYTE)))
    assert outcome == Done("null")
    assert seen == ["x" * MEGABYTE, {"text": "x" * MEGABYTE}]


async def test_where_no_thread_is_to_be_had_payload_and_result_are_moved_without_one(
    app: App, large: Offload, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    make(app, "async", lambda text, ctx: text)
    work = work_with(app, *offloaded(large, "x" * MEGABYTE))
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        outcome = await run(work)
    assert isinstance(outcome, Done)
    assert isinstance(parse_reference(outcome.result), Reference)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("trouble", ["missing", "altered", "no blobs"])
async def test_a_payload_that_cannot_be_fetched_fails_the_attempt_and_is_tried_again(
    app: App, large: Offload, root: Path, kind: str, trouble: str
) -> None:
    make(app, kind, lambda text, ctx: pytest.fail("the handler ran"))
    payload, id_ = offloaded(large, "x")
    work = work_with(app, payload, id_)
    if trouble == "missing":
        blobs(root)[0].unlink()
    elif trouble == "no blobs":
        app._location.blobs = None
    else:
        blobs(root)[0].write_bytes(b'{"text":  "y"}'[:13])
    outcome = await run(work)
    assert isinstance(outcome, Raised)
    assert outcome.report.type == "windlass.errors.BlobUnavailable"
    for part in (id_, "its payload cannot be fetched", "expected 13 bytes with sha256"):
        assert part in outcome.report.message
    reported = {"missing": "is missing", "altered": "was altered", "no blobs": "this app has no blob store"}
    assert reported[trouble] in outcome.report.message


@pytest.mark.parametrize("kind", KINDS)
async def test_text_that_only_looks_like_a_reference_does_not_fit_the_task(
    app: App, large: Offload, kind: str
) -> None:
    make(app, kind, lambda text, ctx: pytest.fail("the handler ran"))
    outcome = await run(work_with(app, "blob:v1:../../etc/passwd:1:" + "0" * 64))
    assert isinstance(outcome, Raised)
    assert outcome.report.message.startswith("payload: cannot be read")


@pytest.mark.parametrize("kind", KINDS)
async def test_another_jobs_reference_reads_nothing_of_that_job(app: App, large: Offload, kind: str) -> None:
    make(app, kind, lambda text, ctx: pytest.fail("the handler ran"))
    payload, _ = offloaded(large, "secret")
    outcome = await run(work_with(app, payload))
    assert isinstance(outcome, Raised)
    assert "is missing" in outcome.report.message


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("size", "files"), [(INLINE_LIMIT, 0), (INLINE_LIMIT + 1, 1), (5 * MEGABYTE, 1)])
async def test_a_result_that_does_not_fit_into_the_row_is_offloaded(
    app: App, large: Offload, root: Path, kind: str, size: int, files: int
) -> None:
    make(app, kind, lambda text, ctx: "x" * (size - 2))
    work = work_with(app, '{"text": ""}')
    outcome = await run(work)
    assert isinstance(outcome, Done)
    assert len(blobs(root)) == files
    reference = parse_reference(outcome.result)
    text = large.fetch(work.claimed.id, reference) if isinstance(reference, Reference) else outcome.result
    assert decode(text or "") == "x" * (size - 2)


@pytest.mark.parametrize("kind", KINDS)
async def test_a_result_that_cannot_be_offloaded_does_not_undo_the_work(
    app: App, large: Offload, root: Path, kind: str
) -> None:
    make(app, kind, lambda text, ctx: "x" * MEGABYTE)
    make_file(root)
    outcome = await run(work_with(app, '{"text": ""}'))
    assert isinstance(outcome, Done)
    note = decode(outcome.result or "")["unstorable_result"]
    assert "its result of 1,048,578 bytes cannot be kept" in note
    assert "Not a directory" in note


@pytest.mark.parametrize("kind", KINDS)
async def test_a_result_beyond_the_limit_of_blobs_is_unstorable(
    app: App, large: Offload, root: Path, kind: str
) -> None:
    make(app, kind, lambda text, ctx: "x" * MAX_BLOB_SIZE)
    outcome = await run(work_with(app, '{"text": ""}'))
    assert isinstance(outcome, Done)
    assert f"the limit is {MAX_BLOB_SIZE:,}" in decode(outcome.result or "")["unstorable_result"]
    assert blobs(root) == []


async def test_a_handler_that_is_cancelled_while_its_result_is_offloaded_has_done_its_work(
    app: App, large: Offload, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(app, "async", lambda text, ctx: "x" * MEGABYTE)
    putting, go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    keep = Offload.keep

    def slow(self: Offload, *args: Any) -> str:
        loop.call_soon_threadsafe(putting.set)
        go.wait()
        return keep(self, *args)

    monkeypatch.setattr(Offload, "keep", slow)
    work = work_with(app, '{"text": ""}')
    task = asyncio.create_task(run_async(work))
    await putting.wait()
    work.halt(Halt.DRAIN)
    task.cancel()
    outcome = await task
    go.set()
    assert isinstance(outcome, Done)
    assert "unstorable_result" in (outcome.result or "")


async def test_a_handler_that_is_cancelled_while_its_payload_is_fetched_never_starts(
    app: App, large: Offload, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(app, "async", lambda text, ctx: pytest.fail("the handler ran"))
    fetching, go = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()

    def slow(self: Offload, *args: Any) -> str:
        loop.call_soon_threadsafe(fetching.set)
        go.wait()
        return "{}"

    work = work_with(app, *offloaded(large, "x"))
    monkeypatch.setattr(Offload, "fetch", slow)
    task = asyncio.create_task(run_async(work))
    await fetching.wait()
    work.halt(Halt.CANCEL)
    task.cancel()
    outcome = await task
    go.set()
    assert isinstance(outcome, Raised)
    assert outcome.report.type == "Cancelled"


async def test_a_large_result_is_kept_though_its_handler_left_a_cancellation_behind(app: App) -> None:
    @app.task(type="t")
    async def leave() -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        return "x" * MEGABYTE

    outcome = await run_attempt(work_with(app, "{}"))
    assert isinstance(outcome, Done)
    assert isinstance(parse_reference(str(outcome.result)), Reference)
