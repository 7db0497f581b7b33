"""Handlers in processes of their own that leave things behind: all of it ends with their process."""

from pathlib import Path

import pytest

from tests.e2e.stage import Stage
from tests.support.parts import extended
from tests.support.processes import alive, children, until

AS_FOUND = [True, 0o022, True, None]


def child_of(den: Stage, id_: str) -> int:
    """The process that a handler left behind, as soon as it has said which."""
    path = Path(den.folder, f"child-{id_}")
    until(lambda: path.exists() and path.read_text(), "the handler has a child")
    return int(path.read_text())


@pytest.mark.parametrize("how", ["daemon", *extended(["plain", "setsid"])])
def test_a_child_that_is_left_behind_ends_with_its_handlers_process(den: Stage, how: str) -> None:
    id_ = den.enqueue_one("leave_child", how=how)
    den.worker("--concurrency", "2", app="rogues:app")
    good = den.enqueue("process.quick", 5, what="")
    den.until_status(id_, "completed")
    until(lambda: not alive(child_of(den, id_)), "the child is ended")
    den.until_finished()
    spoiled = den.history.starts(id_)[0].pid
    assert spoiled not in {den.job(each).result for each in good}, "a process with a child was used again"
    den.check()
    den.close_down()


def test_a_child_that_hides_and_whose_parent_dies_is_found(den: Stage) -> None:
    id_ = den.enqueue_one("leave_child", {"max_attempts": 1, "timeout": None}, how="daemon and die")
    den.worker(app="rogues:app")
    job = den.until_status(id_, "dead")
    assert (job.crashes, job.failures) == (1, 0)
    until(lambda: not alive(child_of(den, id_)), "the child is ended")
    den.close_down()


@pytest.mark.parametrize("how", ["setsid", *extended(["plain", "clean"])])
def test_a_process_that_took_too_long_is_killed_with_its_descendants(den: Stage, how: str) -> None:
    id_ = den.enqueue_one("leave_child_and_wait", {"max_attempts": 1, "timeout": 1}, how=how)
    worker = den.worker(app="rogues:app")
    runner = worker.runner()
    child = child_of(den, id_)
    job = den.until_status(id_, "dead")
    assert job.error is not None
    assert (job.error.type, job.failures, job.crashes) == ("TimeoutError", 1, 0)
    until(lambda: not alive(child), "the child is ended")
    assert not alive(den.history.starts(id_)[0].pid)
    assert worker.runners() == [runner]
    den.close_down()


def test_a_handler_that_forks_and_returns_twice_ends_once(den: Stage) -> None:
    ids = {kind: den.enqueue_one(f"{kind}.fork_twice", what="") for kind in ("async", "thread", "process")}
    worker = den.worker(app="rogues:app")
    den.enqueue("async.quick", 20, what="")
    den.until_finished()
    assert {kind: den.job(id_).result for kind, id_ in ids.items()} == {"async": 1, "thread": 1, "process": 1}
    runner = worker.runner()
    until(lambda: all(b"cell" in each for each in map(_command, children(runner))), "the copies have ended")
    assert worker.runners() == [runner]
    den.check(again=ids.values())  # both processes traced their end
    den.close_down()


def _command(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def test_memory_without_end_is_the_end_of_one_attempt(den: Stage) -> None:
    id_ = den.enqueue_one("devour", {"max_attempts": 1})
    good = den.enqueue("process.quick", 3, what="")
    den.worker("--concurrency", "1", app="rogues:app")
    job = den.until_status(id_, "dead")
    assert job.error is not None
    assert (job.error.type, job.failures, job.crashes) == ("MemoryError", 1, 0)
    den.until_finished()
    limited = den.history.starts(id_)[0].pid
    assert limited not in {den.job(each).result for each in good}, "the next job found the limit"
    den.check(unfinished=[id_])
    den.close_down()


def test_a_process_without_descriptors_is_a_crash(den: Stage) -> None:
    id_ = den.enqueue_one("close_all", {"max_attempts": 10})
    good = den.enqueue("process.quick", 3, what="")
    worker = den.worker("--concurrency", "2", app="rogues:app")
    runner = worker.runner()
    job = den.until_status(id_, "dead")
    assert (job.crashes, job.failures, job.reason) == (3, 0, "crashed its runner 3 times")
    den.until_finished()
    assert worker.runners() == [runner]
    assert {den.job(each).attempt for each in good} == {1}
    den.check(unfinished=[id_])
    den.close_down()


def test_what_a_handler_changes_around_it_is_not_there_for_the_next_one(den: Stage) -> None:
    changes = ("folder", "umask", "signals", "locale", "zone", "streams", "output")
    jobs = [den.make(type_, None, **payload) for what in changes for type_, payload in _change_and_look(what)]
    ids = den.enqueue_all(jobs)
    den.worker("--concurrency", "1", app="rogues:app")
    den.until_finished()
    for what, changed, looked in zip(changes, ids[::2], ids[1::2], strict=True):
        *found, pid = den.job(looked).result
        assert found == AS_FOUND, what
        if what != "streams":
            assert pid != den.job(changed).result, f"a process with another {what} was used again"
    den.check()
    den.close_down()


def _change_and_look(what: str) -> list[tuple[str, dict[str, str]]]:
    return [("change", {"what": what}), ("look_around", {})]


@pytest.mark.parametrize("ending", ["\n", *extended(["", "\r\n"])])
def test_a_handler_that_prints_without_end_is_read_and_mostly_forgotten(den: Stage, ending: str) -> None:
    id_ = den.enqueue_one("shout", megabytes=120, ending=ending)
    den.worker("--concurrency", "1", app="rogues:app")
    good = den.enqueue_one("say", text="quietly")
    den.until_finished()
    job = den.job(id_)
    assert (job.status, job.attempt) == ("completed", 1)
    assert 1 <= len(job.logs) <= 50
    assert all(len(line.text) <= 1000 for line in job.logs)
    assert job.logs[-1].text.endswith("the end")
    assert [line.text for line in den.job(good).logs] == ["logged quietly", "quietly"]
    den.check()
    den.close_down()
