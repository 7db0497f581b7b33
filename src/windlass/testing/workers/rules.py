"""The rules, each a function that raises Broken. The first line of its docstring is what is reported."""

import time
from collections.abc import Callable
from typing import Any

from windlass.testing.workers.proxy import Check, Exchange
from windlass.testing.workers.stage import Stage, expect

Rule = Callable[[Stage], None]
VALUES: tuple[Any, ...] = (None, True, 0, -1.5, "", 'ä€😀 "\\\n', [], {"a": [1, {"b": None}]}, "x" * 20_000)
QUIET_SECONDS = 3.0
MAX_IDLE_CLAIMS = 3


def completes_jobs(stage: Stage) -> None:
    """Claims jobs, and completes them with the JSON that their handlers return."""
    ids = [stage.enqueue("echo", value=value) for value in VALUES]
    for id_, value in zip(ids, VALUES, strict=True):
        found = stage.completed(id_).result
        expect(found == value, f"check.echo returned {found!r:.80} for {value!r:.80}")


def settles_failures(stage: Stage) -> None:
    """Settles an attempt that failed as `failed`, with type and message of the error."""
    job = stage.ended(stage.enqueue("fail", max_attempts=1, message="not this one"))
    expect(job.status == "dead", f"check.fail ended as {job.status}")
    expect(job.error is not None and "not this one" in job.error.message, f"the message is lost: {job.error}")


def waits_for_jobs(stage: Stage) -> None:
    """Waits in the claim (`wait`) instead of asking again and again."""
    stage.completed(stage.enqueue("echo", value=1))
    time.sleep(0.5)  # for what is still on its way
    before = len(stage.proxy.claims())
    time.sleep(QUIET_SECONDS)
    claims = len(stage.proxy.claims()) - before
    expect(claims <= MAX_IDLE_CLAIMS, f"{claims} claims in {QUIET_SECONDS:g} s without a job")


def numbers_claims(stage: Stage) -> None:
    """Gives each claim of a worker id a number that is larger than the one before."""
    for n in range(3):
        stage.completed(stage.enqueue("echo", value=n))
    last: dict[str, int] = {}
    for exchange in stage.proxy.claims():
        if exchange.answer is not None:
            worker, number = exchange.body["worker"], exchange.body["claim"]
            is_open = not exchange.body.get("limit", 1)
            expect(is_open or number > last.get(worker, -1), f"claim {number} of {worker} was answered before")
            last[worker] = max(number, last.get(worker, -1))


def beats_while_jobs_run(stage: Stage) -> None:
    """Renews its lease while a job runs for longer than the lease."""
    stage.completed(stage.enqueue("slow", seconds=2.5 * stage.lease))


def stops_cancelled_jobs(stage: Stage) -> None:
    """Stops an attempt that `cancels` of a beat names, and settles it as `cancelled`."""
    id_ = stage.enqueue("slow", seconds=600)
    stage.running(id_)
    stage.app.jobs.cancel(id_)
    job = stage.ended(id_)
    expect(job.status == "cancelled", f"it ended as {job.status}")


def ends_attempts_at_their_timeout(stage: Stage) -> None:
    """Ends an attempt after its `timeout`, as failed."""
    job = stage.ended(stage.enqueue("slow", timeout=1, max_attempts=1, seconds=600))
    expect(job.status == "dead" and job.failures == 1, f"it ended as {job.status}, {job.failures} failures")


def repeats_a_claim_without_answer(stage: Stage) -> None:
    """Repeats a claim whose answer was lost under the same number, so that its jobs are not lost."""
    lost = _lose_replies(stage, lambda exchange: exchange.is_claim and bool(exchange.jobs), 2)
    stage.completed(stage.enqueue("echo", value=1))
    expect(lost, "no claim brought the job")
    stage.completed(stage.enqueue("echo", value=2))


def repeats_a_settlement_without_answer(stage: Stage) -> None:
    """Repeats a settlement whose answer was lost, and takes `already` for an answer."""
    lost = _lose_replies(stage, lambda exchange: exchange.path == "/claims/settle", 2)
    stage.completed(stage.enqueue("echo", value=1))
    stage.until(lambda: len(lost) == 2, "it does not repeat the settlement")
    stage.completed(stage.enqueue("echo", value=2))


def repeats_what_the_server_did_not_get(stage: Stage) -> None:
    """Repeats a settlement whose connection was cut before it arrived."""
    cut: list[Exchange] = []
    stage.proxy.lose_request = _some(cut, lambda exchange: exchange.path == "/claims/settle", 2)
    stage.completed(stage.enqueue("echo", value=1))
    expect(len(cut) == 2, "it sends no settlement")


def outlives_503(stage: Stage) -> None:
    """Repeats calls that were answered with 503."""
    id_ = stage.enqueue("slow", seconds=1)
    stage.running(id_)
    stage.proxy.is_failing = True
    time.sleep(1.5)
    stage.proxy.is_failing = False
    stage.completed(id_)


def outlives_a_server_that_is_away(stage: Stage) -> None:
    """Goes on after a time without a server that was longer than its lease."""
    id_ = stage.enqueue("slow", seconds=1)
    stage.running(id_)
    stage.proxy.go_away()
    time.sleep(1.5 * stage.lease)
    stage.proxy.come_back()
    job = stage.ended(id_)
    expect(job.status == "completed", f"its job ended as {job.status}")
    stage.completed(stage.enqueue("echo", value=1))


def begins_anew_without_its_lease(stage: Stage) -> None:
    """Goes on under a new id after 409 lease_lost, and settles nothing that it held before."""
    id_ = stage.enqueue("slow", seconds=2 * stage.lease)
    stage.running(id_)
    lost = (stage.job(id_).worker or "").removeprefix("rest-").rpartition("-")[0]
    stage.end_lease(lost)
    job = stage.ended(id_)
    expect(job.status == "completed", f"its job ended as {job.status}")
    expect(job.attempt == 2, f"its job has {job.attempt} attempts: the first one was put back")
    expect(not (job.worker or "").startswith(f"rest-{lost}-"), "it goes on under the id that it lost")


def finishes_when_it_is_told_to_stop(stage: Stage) -> None:
    """After SIGTERM it claims nothing more, settles what runs, ends its lease, and exits with 0."""
    id_ = stage.enqueue("slow", seconds=1.5)
    stage.running(id_)
    # The server has claimed it: what stops before it has the answer leaves the job to another worker, and may.
    stage.until(lambda: stage.proxy.has_passed_on(id_), "it does not read the answer of a claim")
    time.sleep(0.3)
    stage.terminate()
    time.sleep(0.3)
    left = stage.enqueue("echo", value=1)
    code = stage.exit_code()
    stage.completed(id_)
    expect(code == 0, f"its exit code is {code}")
    expect(stage.job(left).status != "running", "it left a job behind that it claimed after SIGTERM")
    stage.until(
        lambda: not stage.types(), "its lease did not end with it: it did not call /claims/end", stage.lease / 2
    )


def leaves_its_jobs_when_it_is_killed(stage: Stage) -> None:
    """After kill -9 its jobs run again: the next start has a new id."""
    id_ = stage.enqueue("slow", seconds=1)
    stage.running(id_)
    stage.kill()
    stage.start()
    stage.completed(id_, attempt=2)


def reports_progress(stage: Stage) -> None:
    """Sends progress and log lines with its beats."""
    job = stage.completed(stage.enqueue("progress"))
    expect(job.progress is not None and job.progress.done == 1, f"its progress is {job.progress}")
    expect("half" in [line.text for line in job.logs], f"its log lines are {[line.text for line in job.logs]}")


def snoozes(stage: Stage) -> None:
    """Settles an attempt that came too early as `snoozed`: no failure is counted."""
    job = stage.completed(stage.enqueue("snooze"), attempt=2)
    expect((job.snoozes, job.failures) == (1, 0), f"{job.snoozes} snoozes, {job.failures} failures")


RULES: tuple[tuple[str, Rule], ...] = (
    ("echo", completes_jobs),
    ("fail", settles_failures),
    ("echo", waits_for_jobs),
    ("echo", numbers_claims),
    ("slow", beats_while_jobs_run),
    ("slow", stops_cancelled_jobs),
    ("slow", ends_attempts_at_their_timeout),
    ("echo", repeats_a_claim_without_answer),
    ("echo", repeats_a_settlement_without_answer),
    ("echo", repeats_what_the_server_did_not_get),
    ("slow", outlives_503),
    ("slow", outlives_a_server_that_is_away),
    ("slow", begins_anew_without_its_lease),
    ("slow", leaves_its_jobs_when_it_is_killed),
    ("progress", reports_progress),
    ("snooze", snoozes),
    ("slow", finishes_when_it_is_told_to_stop),
)
"""Each with the type of job that it needs."""
OPTIONAL = frozenset(("progress", "snooze"))


def _lose_replies(stage: Stage, which: Check, most: int) -> list[Exchange]:
    lost: list[Exchange] = []
    stage.proxy.lose_reply = _some(lost, which, most)
    return lost


def _some(found: list[Exchange], which: Check, most: int) -> Check:
    """A filter that is true for the first `most` matching exchanges, and notes them."""

    def is_one(exchange: Exchange) -> bool:
        if len(found) == most or not which(exchange):
            return False
        found.append(exchange)
        return True

    return is_one
