"""The checker itself: a good history passes, and each bad one is caught by the law that it breaks."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.support.checker import Line, Report, audit, read
from windlass.observe.history import History

RUNNER, OTHER, PRODUCER = 100, 200, 300


class Tale:
    """A history made by hand, line by line, with a second between them."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.jobs: dict[str, dict[str, Any]] = {}
        self.twice: list[dict[str, Any]] = []
        self.counts: dict[str, int] | None = None
        self._now = 0
        self._calls = 0

    def say(self, what: str, pid: int = RUNNER, **facts: Any) -> Line:
        self._now += 1_000_000_000
        self.lines.append({"at": self._now, "pid": pid, "role": "r", "what": what, **facts})
        return self.lines[-1]

    def ask(self, what: str, pid: int = RUNNER, **facts: Any) -> int:
        self._calls += 1
        self.say(what, pid, step="invoke", call=self._calls, **facts)
        return self._calls

    def call(self, what: str, asked: dict[str, Any], answer: dict[str, Any], pid: int = RUNNER) -> None:
        self.say(what, pid, step="ok", call=self.ask(what, pid, **asked), **answer)

    # The walk of a job, in words.

    def offer(self, job: str, key: str | None = None, **more: Any) -> int:
        facts = {"job": job, "queue": "q", "type": "t", "priority": 0, "payload": "p", "key": key, "waits": False}
        return self.ask("enqueue", PRODUCER, jobs=[{**facts, **more}])

    def enqueue(self, job: str, key: str | None = None, winner: str | None = None, **more: Any) -> None:
        call = self.offer(job, key, **more)
        self.say("enqueue", PRODUCER, step="ok", call=call, answers=[[winner or job, winner is not None]])
        if winner is None:
            self.keep(job, status="pending")

    def keep(self, job: str, **fields: Any) -> None:
        fresh = {"id": job, "attempt": 0, "max_attempts": 3, "attempts": []}
        self.jobs[job] = {**fresh, **self.jobs.get(job, {}), **fields}

    def claim(
        self, job: str, attempt: int = 1, pid: int = RUNNER, payload: str = "p", given: dict[str, str] | None = None
    ) -> None:
        asked = {"runner": f"r{pid}", "claim": self._calls + 1, "limit": 1}
        brought = {"job": job, "attempt": attempt, "payload": payload, "given": given or {}}
        self.call("claim", asked, {"jobs": [brought]}, pid)
        self.keep(job, status="running", attempt=attempt)

    def cut_claim(self, *queues: str, limit: int = 1, pid: int = OTHER) -> None:
        """Its connection was cut, and the server may not know yet."""
        call = self.ask("claim", pid, runner=f"r{pid}", claim=self._calls + 1, limit=limit, queues=list(queues))
        self.say("claim", pid, step="fail", call=call, problem="cut")

    def start(self, job: str, attempt: int = 1, pid: int = RUNNER) -> None:
        self.say("start", pid, job=job, attempt=attempt, payload="p")

    def end(self, job: str, attempt: int = 1, pid: int = RUNNER, outcome: str = "Done") -> None:
        self.say("end", pid, job=job, attempt=attempt, outcome=outcome)

    def settle(
        self, job: str, attempt: int = 1, status: str = "completed", answer: str = "settled", pid: int = RUNNER
    ) -> None:
        reported = {"job": job, "attempt": attempt, "status": status, "outcome": status}
        self.call("settle", {"jobs": [reported]}, {"answers": [answer]}, pid)
        if answer == "settled":
            self.keep(job, status=status)

    def run(self, job: str, attempt: int = 1, pid: int = RUNNER) -> None:
        self.claim(job, attempt, pid)
        self.start(job, attempt, pid)
        self.end(job, attempt, pid)
        self.settle(job, attempt, pid=pid)

    def rescue(self, job: str, attempt: int = 1, outcome: str = "rescued") -> None:
        put = {"job": job, "attempt": attempt, "status": "pending", "outcome": outcome}
        self.call("rescue", {}, {"jobs": [put]}, OTHER)
        self.keep(job, status="pending", rescues=self.jobs[job].get("rescues", 0) + 1)

    def fault(self, *pids: int, kills: bool = True) -> None:
        self.say("fault", 1, kind="kill" if kills else "pause", pids=list(pids), kills=kills)

    def refuse(self, job: str) -> None:
        self.say("enqueue", PRODUCER, step="fail", call=self.offer(job), problem="full")

    def judge(self) -> Report:
        dump = [*self.jobs.values(), *self.twice]
        counts = Counter(job["status"] for job in self.jobs.values()) if self.counts is None else self.counts
        return audit(self.lines, dump, counts)


# Good histories.


def everything_goes_well(tale: Tale) -> None:
    for job in ("a", "b", "c"):
        tale.enqueue(job)
    for job in ("a", "b", "c"):
        tale.run(job)


def a_runner_is_killed_and_its_job_runs_again(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.start("a")
    tale.fault(RUNNER)
    tale.rescue("a")
    tale.run("a", 2, OTHER)


def a_job_fails_and_succeeds(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.start("a")
    tale.end("a", outcome="Raised")
    tale.settle("a", status="failed")
    tale.keep("a", failures=1)
    tale.run("a", 2)


def an_unknown_enqueue_came_through_and_was_repeated(tale: Tale) -> None:
    tale.say("enqueue", PRODUCER, step="info", call=tale.offer("a"), problem="cut")
    tale.say("enqueue", PRODUCER, step="ok", call=tale.offer("a"), answers=[["a", True]])
    tale.offer("b")
    tale.run("a")


def a_refused_enqueue_is_repeated_and_stored(tale: Tale) -> None:
    tale.refuse("a")
    tale.enqueue("a")
    tale.run("a")


def a_killed_runner_has_its_job_charged(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.start("a")
    tale.fault(RUNNER)
    tale.rescue("a", outcome="crashed")
    tale.run("a", 2, OTHER)


def a_late_outcome_is_refused(tale: Tale) -> None:
    a_runner_is_killed_and_its_job_runs_again(tale)
    tale.settle("a", 1, answer="stale")


def a_key_is_used_again_when_it_is_free(tale: Tale) -> None:
    tale.enqueue("a", key="k")
    tale.enqueue("b", key="k", winner="a")
    tale.run("a")
    tale.enqueue("c", key="k")
    tale.run("c")


def an_operator_retries_what_was_done(tale: Tale) -> None:
    tale.enqueue("a")
    tale.run("a")
    tale.call("retry", {"jobs": ["a"]}, {"done": [True]}, PRODUCER)
    tale.run("a", 2)


def a_claim_whose_answer_was_lost_is_asked_again(tale: Tale) -> None:
    tale.enqueue("a")
    asked: dict[str, Any] = {"runner": "r", "claim": 7, "limit": 1}
    tale.say("claim", step="info", call=tale.ask("claim", **asked))
    tale.enqueue("b")
    tale.run("b", pid=OTHER)
    tale.call("claim", asked, {"jobs": [{"job": "a", "attempt": 1, "payload": "p"}]})
    tale.start("a")
    tale.end("a")
    tale.keep("a", attempt=1)
    tale.settle("a")


def a_requeue_without_an_answer(tale: Tale) -> None:
    tale.enqueue("a")
    tale.claim("a")
    tale.start("a")
    tale.fault(RUNNER)
    tale.ask("rescue", OTHER)
    tale.keep("a", rescues=1)
    tale.run("a", 2, OTHER)


def it_drains_in_time(tale: Tale) -> None:
    everything_goes_well(tale)
    tale.say("healed", seconds=30)
    tale.say("drained", leases=[])
    for files in (10, 12):
        tale.say("sample", of=RUNNER, files=files, memory=1 << 20, zombies=0)


def a_long_backlog_drains_job_by_job(tale: Tale) -> None:
    for number in range(30):
        tale.enqueue(f"job {number}")
    tale.say("healed", seconds=10)
    for number in range(30):
        tale.run(f"job {number}")
    tale.say("drained", leases=[])


def jobs_that_a_cut_claim_had_locked_are_found_later(tale: Tale) -> None:
    tale.say("skips_locked")
    for job in ("a", "b"):
        tale.enqueue(job)
    tale.cut_claim("q", limit=2)
    tale.enqueue("c")
    for job in ("c", "b", "a"):
        tale.run(job)


GOOD: list[Callable[[Tale], None]] = [
    everything_goes_well,
    a_runner_is_killed_and_its_job_runs_again,
    a_job_fails_and_succeeds,
    an_unknown_enqueue_came_through_and_was_repeated,
    a_refused_enqueue_is_repeated_and_stored,
    a_killed_runner_has_its_job_charged,
    a_late_outcome_is_refused,
    a_key_is_used_again_when_it_is_free,
    an_operator_retries_what_was_done,
    a_claim_whose_answer_was_lost_is_asked_again,
    a_requeue_without_an_answer,
    it_drains_in_time,
    a_long_backlog_drains_job_by_job,
    jobs_that_a_cut_claim_had_locked_are_found_later,
]


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.__name__)
def test_a_good_history_passes(good: Callable[[Tale], None]) -> None:
    tale = Tale()
    good(tale)
    report = tale.judge()
    assert not report.violations, str(report)


def test_the_figures_are_in_the_words_of_jepsen() -> None:
    tale = Tale()
    an_unknown_enqueue_came_through_and_was_repeated(tale)
    tale.enqueue("lost")
    del tale.jobs["lost"]
    figures = tale.judge().figures
    assert (figures["acknowledged"], figures["lost"], figures["recovered"], figures["runs"]) == (2, 1, 0, 1)


def test_files_of_several_processes_are_read_as_one_stream(tmp_path: Path) -> None:
    first, second = History(tmp_path, "one"), History(tmp_path, "two")
    for number in range(10):
        (first if number % 3 else second).write("mark", number=number)
    assert [line["number"] for line in read(tmp_path)] == list(range(10))
