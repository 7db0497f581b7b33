"""The laws of one job's life, by their numbers in research/reliability.md: each yields what breaks it."""

from collections import Counter
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

from tests.support.checker.lives import FOREVER, Claim, Ending, Fault, Life, Run, Times
from windlass.core.status import FINISHED, Status, may_move

Dumped = dict[str, Any]
Law = Callable[[Life, Dumped | None, Times], Iterator[str]]

REASONS = ("failures", "crashes", "rescues", "suspicions", "requeues", "snoozes")
"""What the store counts, each of which may make a job run once more."""
FREE = ("rescues", "suspicions", "requeues", "snoozes")
"""Those that do not use up the budget."""


def lost(life: Life, job: Dumped | None, times: Times) -> Iterator[str]:
    """I1: an acknowledged job is there, and completed means that a handler came to its end."""
    acknowledged = any(each.step == "ok" and each.winner == life.id for each in life.enqueues)
    if acknowledged and job is None and not life.acted("delete"):
        yield "it was acknowledged, and it is gone"
    if job is not None and job["status"] == Status.COMPLETED:
        ended = {run.attempt for run in life.runs if run.outcome in ("Done", "Decided")}
        if job["attempt"] not in ended:
            yield f"it is completed by attempt {job['attempt']}, which never came to its end"


def unexpected(life: Life, job: Dumped | None, times: Times) -> Iterator[str]:
    """I2: nothing is there, or runs, that was not enqueued, and payloads are as they were sent."""
    seen = job is not None or life.runs or life.claims
    if seen and not any(each.step != "fail" for each in life.enqueues):
        yield "it was not enqueued" if not life.enqueues else "its enqueue was refused, and yet it is there"
    yield from _refused(life)
    sent = {each.facts["payload"] for each in life.enqueues}
    for one in _seen(life):
        if sent and one.payload not in sent:
            yield f"attempt {one.attempt} got another payload than was sent"
            return


def _refused(life: Life) -> Iterator[str]:
    """What was there although every enqueue until then had been answered with: nothing was stored."""
    first = min((each.invoked for each in life.enqueues if each.step != "fail"), default=FOREVER)
    early = [claim.attempt for claim in life.claims if claim.answered < first < FOREVER]
    if early:
        yield f"attempt {early[0]} was claimed while every enqueue had been refused"
    for each in life.enqueues:
        known = each.step == "ok" and each.existing and each.winner == life.id
        if known and each.invoked == first and any(other.invoked < first for other in life.enqueues):
            yield "its enqueue was refused, and the next found it in the store"


def _seen(life: Life) -> list[Claim | Run]:
    return [*life.claims, *life.runs]


def too_often(life: Life, job: Dumped | None, times: Times) -> Iterator[str]:
    """I3: it ran once, and once more for each reason that the store has counted."""
    if job is None:
        return
    # A person's retry gives a fresh budget and clears the counters of the old one.
    if life.acted("retry"):
        return
    reasons = sum(job.get(name, 0) for name in REASONS)
    if len(life.runs) > 1 + reasons:
        yield f"it ran {len(life.runs)} times for {reasons} reasons to run again"
    budget = job["max_attempts"] + sum(job.get(name, 0) for name in FREE)
    if len(life.runs) > budget:
        yield f"it ran {len(life.runs)} times, with a budget of {budget}"


def without_cause(life: Life, job: Dumped | None, times: Times) -> Iterator[str]:
    """I4: an attempt that was cut short, and made up for by another, was in the hands of a fault's victim."""
    runs = sorted(life.runs, key=lambda run: run.attempt)
    for run, following in pairwise(runs):
        settled = any(each.attempt == run.attempt and each.answer != "stale" for each in life.settles)
        before = [fault for fault in times.faults if fault.at <= following.start]
        if not settled and not _was_hit(life, run.attempt, before):
            yield f"attempt {run.attempt} was cut short without a fault, and attempt {following.attempt} ran"


def _was_hit(life: Life, attempt: int, faults: list[Fault]) -> bool:
    """Whether a process that held the attempt was among the victims, while or after it did."""
    holders = {run.pid: run.start for run in life.runs if run.attempt == attempt}
    holders |= {claim.pid: claim.invoked for claim in life.claims if claim.attempt == attempt}
    return any(pid in fault.pids and at <= fault.until for fault in faults for pid, at in holders.items())


def charged_wrongly(life: Life, job: Dumped | None, times: Times) -> Iterator[str]:
    """I19: an attempt is charged with a crash, or suspected of one, only if a process that held it was killed."""
    reported = {each.attempt: each.outcome for each in (*life.settles, *life.put_backs) if each.answer == "settled"}
    reported |= {each["attempt"]: each["outcome"] for each in (job or {}).get("attempts", ()) if each.get("outcome")}
    killing = [fault for fault in times.faults if fault.kills]
    for attempt, outcome in reported.items():
        if outcome.startswith("crashed") and not _was_hit(life, attempt, killing):
            yield f"attempt {attempt} was charged as {outcome!r}, and its process was not killed"


def held_twice(life: Life, job: Dumped | None, times: Times) -> Iterator[str]:
    """I5: an attempt begins when the one before it is over, in its handler and in the store."""
    for run, following in pairwise(sorted(life.runs, key=lambda run: run.attempt)):
        if run.end is not None and run.end > following.start and run.attempt < following.attempt:
            yield f"attempts {run.attempt} and {following.attempt} overlap"
    claims = sorted(life.claims, key=lambda claim: claim.attempt)
    for claim, following_claim in pairwise(claims):
        if claim.attempt < following_claim.attempt and not _released(life, claim, following_claim.answered, times):
            yield f"attempt {following_claim.attempt} was claimed while attempt {claim.attempt} was held"


def _released(life: Life, claim: Claim, before: int, times: Times) -> bool:
    reported = [each for each in (*life.settles, *life.put_backs) if each.attempt >= claim.attempt]
    named = any(each.invoked < before and each.answer not in ("stale", "failed") for each in reported)
    return named or any(at < before for at in times.silent_put_backs)


def stale_write(life: Life, job: Dumped | None, times: Times) -> Iterator[str]:
    """I6: what an old attempt writes changes nothing, and an attempt ends once."""
    for reported in life.settles:
        newer = [claim.attempt for claim in life.claims if claim.answered < reported.invoked]
        if reported.answer == "settled" and newer and max(newer) > reported.attempt:
            yield f"attempt {reported.attempt} was settled after attempt {max(newer)} had been claimed"
    settled = [each for each in (*life.settles, *life.put_backs) if each.answer == "settled"]
    for attempt, times_ in Counter(each.attempt for each in settled).items():
        if times_ > 1:
            yield f"attempt {attempt} was settled {times_} times"


def moved_wrongly(life: Life, job: Dumped | None, times: Times) -> Iterator[str]:
    """I7: legal moves only, and what is finished stays so until a person says otherwise."""
    reported = [each for each in (*life.settles, *life.put_backs) if each.answer in ("settled", "already")]
    for each in reported:
        if not may_move(Status.RUNNING, Status(each.status)):
            yield f"attempt {each.attempt} moved it from running to {each.status}"
    finish = _finish(reported)
    if finish is None:
        return
    # A claim that was asked for before the retry may have come to the store after it.
    begun: list[tuple[int, int, Claim | Run]] = [(claim.invoked, claim.answered, claim) for claim in life.claims]
    begun += [(run.start, run.start, run) for run in life.runs]
    for at, latest, later in begun:
        if at > finish.answered and later.attempt > finish.attempt and not life.acted("retry", before=latest):
            yield f"attempt {later.attempt} began after it was {finish.status}"
    if job is not None and not life.acted("retry") and job["status"] != finish.status:
        yield f"it was settled as {finish.status}, and it is {job['status']}"


def _finish(reported: list[Ending]) -> Ending | None:
    finishes = [each for each in reported if Status(each.status) in FINISHED]
    return min(finishes, key=lambda each: each.answered, default=None)


def numbers_repeat(life: Life, job: Dumped | None, times: Times) -> Iterator[str]:
    """I13: attempt numbers only grow, and no handler sees one twice."""
    for attempt, seen in Counter(run.attempt for run in life.runs).items():
        if seen > 1:
            yield f"attempt {attempt} ran {seen} times"
    for before, after in pairwise(sorted(life.claims, key=lambda claim: claim.answered)):
        # A claim whose answer was lost is asked again under its number, and brings the same.
        if after.attempt <= before.attempt and after.number != before.number and after.invoked > before.answered:
            yield f"attempt {after.attempt} was claimed after attempt {before.attempt}"
    if job is not None:
        newest = max((one.attempt for one in _seen(life)), default=0)
        if job["attempt"] < newest:
            yield f"the store says attempt {job['attempt']}, and attempt {newest} was seen"
        kept = [each["attempt"] for each in job.get("attempts", ())]
        if kept != sorted(set(kept)):
            yield f"its record tells of attempts {kept}"


def undrained(life: Life, job: Dumped | None, times: Times) -> Iterator[str]:
    """I15: left in peace, everything comes to its end."""
    if "drained" in times.marks and job is not None and job["status"] not in FINISHED:
        yield f"all was said to be over, and it is {job['status']}"


def first_claim(life: Life) -> Claim | None:
    """The claim of its first attempt, if it was written down."""
    return min((claim for claim in life.claims if claim.attempt == 1), key=lambda c: c.answered, default=None)


def acknowledged_on(life: Life) -> int:
    """When a producer first knew that it is stored."""
    known = [each.answered for each in life.enqueues if each.step == "ok" and each.winner == life.id]
    return min(known, default=FOREVER)


LAWS: dict[str, Law] = {
    "I1": lost,
    "I2": unexpected,
    "I3": too_often,
    "I4": without_cause,
    "I5": held_twice,
    "I6": stale_write,
    "I7": moved_wrongly,
    "I13": numbers_repeat,
    "I15": undrained,
    "I19": charged_wrongly,
}
