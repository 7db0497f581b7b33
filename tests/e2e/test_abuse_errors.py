"""Handlers that raise unexpected errors, or return what cannot be kept: the attempt is settled, that is all."""

from typing import Any

import pytest

from tests.e2e.stage import Stage
from tests.support.parts import in_part

KINDS = ("async", "thread", "process")

RAISED = {
    "SystemExit": "SystemExit",
    "KeyboardInterrupt": "KeyboardInterrupt",
    "CancelledError": "asyncio.exceptions.CancelledError",
    "GeneratorExit": "GeneratorExit",
    "MemoryError": "MemoryError",
    "RecursionError": "RecursionError",
    "TimeoutError": "TimeoutError",
    "Mute": "rogues.Mute",
    "circle": "ValueError",
    "BrokenPipeError": "BrokenPipeError",
    "ExceptionGroup": "ExceptionGroup",
}
UNKEPT = ("nan", "object", "huge", "loop", "lock")


@pytest.mark.parametrize("kind", in_part(KINDS, ["async"]))
def test_whatever_a_handler_raises_is_a_failure_of_its_attempt_and_nothing_else(den: Stage, kind: str) -> None:
    raising = {what: den.enqueue_one(f"{kind}.raise", {"max_attempts": 1}, what=what) for what in RAISED}
    good = den.enqueue(f"{kind}.quick", 5, what="")
    worker = den.worker("--concurrency", "3", app="rogues:app")
    runner = worker.runner()
    den.until_finished()

    jobs = {what: den.job(id_) for what, id_ in raising.items()}
    assert {what: job.error.type if job.error else None for what, job in jobs.items()} == RAISED
    counters = {(job.status, job.attempt, job.failures, job.crashes, job.requeues) for job in jobs.values()}
    assert counters == {("dead", 1, 1, 0, 0)}
    messages = {what: job.error.message for what, job in jobs.items() if job.error}
    assert (messages["TimeoutError"], messages["circle"]) == ("my own", "first")
    assert messages["Mute"] == "(its message cannot be shown: RuntimeError)"
    assert all(len(job.error.traceback or "") <= 16_000 for job in jobs.values() if job.error)
    assert [worker.runner()] == worker.runners() == [runner], "the runner was replaced"
    den.check(unfinished=raising.values())
    assert {den.job(id_).status for id_ in good} == {"completed"}
    den.close_down()


def test_a_result_that_cannot_be_kept_does_not_undo_the_work(den: Stage) -> None:
    returning = {(kind, what): den.enqueue_one(f"{kind}.return", what=what) for kind in KINDS for what in UNKEPT}
    den.worker("--concurrency", "3", app="rogues:app")
    den.until_finished()
    results: dict[Any, Any] = {each: den.job(id_).result for each, id_ in returning.items()}
    assert {each: list(result) for each, result in results.items()} == {
        each: ["unstorable_result"] for each in results
    }
    assert all(len(result["unstorable_result"]) <= 500 for result in results.values())
    den.check()
    den.close_down()


def test_a_loop_inside_a_handler_works_in_a_thread_or_process_and_is_a_clear_error_on_the_loop(den: Stage) -> None:
    ids = {kind: den.enqueue_one(f"{kind}.loop_inside", {"max_attempts": 1}, what="") for kind in KINDS}
    den.worker(app="rogues:app")
    den.until_finished()
    assert [den.job(ids[kind]).result for kind in ("thread", "process")] == [7, 7]
    failed = den.job(ids["async"])
    assert failed.error is not None
    assert (failed.status, failed.error.type) == ("dead", "RuntimeError")
    assert "asyncio.run() cannot be called from a running event loop" in failed.error.message
    den.check(unfinished=[failed.id])
    den.close_down()


def test_a_handler_that_enqueues_itself_makes_a_chain_and_no_more(den: Stage) -> None:
    first = den.enqueue_one("breed", left=30)
    den.worker(app="rogues:app")
    den.until_status(first, "completed")
    den.until_counts("completed", 31)
    den.until_finished()
    assert {job.attempt for job in den.all_jobs(type="breed")} == {1}
    den.check()
    den.close_down()


def test_threads_that_never_end_neither_hold_the_job_nor_the_worker(den: Stage) -> None:
    ids = [
        den.enqueue_one(f"{kind}.leave_threads", what=what)
        for kind in KINDS
        for what in ("daemons", "plain", "plain")
    ]
    den.worker("--concurrency", "2", app="rogues:app")
    den.until_finished()
    assert {den.job(id_).attempt for id_ in ids} == {1}
    den.check()
    den.close_down()
