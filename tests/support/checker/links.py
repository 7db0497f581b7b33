"""The law of chains: a child runs when all its parents have completed, with their results; it never waits in vain."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.support.checker.lives import Ending, Enqueued, Life, Times
from tests.support.checker.order import Found, Jobs
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT, ParentEffect, effect_of, parent_in_reason
from windlass.core.status import Status

BEGUN = frozenset({"pending", "running", "failed", "completed", "scheduled", "dead"})
"""Where only one can be whose parents have completed."""


def too_early(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I14: no attempt begins, in the store or in its handler, before every parent has completed.

    Of one that waits for ends alone no attempt begins before each of its parents began or was cancelled.
    """
    for life, parents in _children(times, jobs):
        if _waits_for_ends(life):
            yield from _before_any_end(life, parents, times, jobs)
            continue
        for parent in parents:
            first = min((each.invoked for each in _completions(times, parent)), default=None)
            begun = [(run.start, run.attempt) for run in life.runs]
            begun += [(claim.answered, claim.attempt) for claim in life.claims]
            for attempt in sorted({attempt for at, attempt in begun if first is None or at < first}):
                yield life.id, f"attempt {attempt} began before its parent {parent} had completed"
            if first is None and jobs.get(life.id, {}).get("status") in BEGUN:
                yield life.id, f"it is {jobs[life.id]['status']}, and its parent {parent} has never completed"


def wrongly_given(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I14: what a child gets of a parent is the result of an attempt that completed, in every attempt of its own."""
    for life, parents in _children(times, jobs):
        taken = {_existing(times, parent) for _, parent in _stored(life).facts.get("result_params", ())}
        for claim in life.claims:
            for parent in taken.intersection(parents):
                results = {each.result for each in _completions(times, parent) if each.invoked < claim.answered}
                if claim.given.get(parent) not in results:
                    yield life.id, f"attempt {claim.attempt} did not get the result of its parent {parent}"


def in_vain(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I14: when its parents have ended, a child goes on or ends with them; and only such a parent takes it along."""
    for life, parents in _children(times, jobs):
        job = jobs.get(life.id)
        if job is None:
            continue
        ended = {parent: jobs[parent]["status"] for parent in parents if parent in jobs}
        if job["status"] == Status.BLOCKED and job.get("reason") == WAITING_FOR_PARENT:
            turns = {effect_of(Status(status), _waits_for_ends(life)) for status in ended.values()}
            if ParentEffect.CANCEL in turns or ParentEffect.WAIT not in turns:
                yield life.id, f"it waits for its parents, and they are {ended}"
        if _waits_for_ends(life) and parent_in_reason(job.get("reason")) is not None:
            yield life.id, f"it waits for ends alone, and was cancelled because of one: {job['reason']}"
        else:
            yield from _cancelled(job, ended)


def _before_any_end(life: Life, parents: list[str], times: Times, jobs: Jobs) -> Iterator[Found]:
    for parent in parents:
        status = jobs.get(parent, {}).get("status")
        if life.runs and status in ("blocked", "scheduled") and not times.lives[parent].settles:
            yield life.id, f"it ran, and its parent {parent}, which never ran, is {status}"


def _waits_for_ends(life: Life) -> bool:
    return bool(_stored(life).facts.get("when_ended"))


def _cancelled(job: dict[str, Any], ended: Mapping[str, str]) -> Iterator[Found]:
    culprit = parent_in_reason(job.get("reason")) if job["status"] == Status.CANCELLED else None
    # One whose key was taken by another stays cancelled when its parent is tried again.
    if culprit is None or job.get("idempotency_key"):
        return
    if culprit not in job["parents"]:
        yield job["id"], f"it was cancelled because of {culprit}, which is no parent of it"
    elif culprit in ended and effect_of(Status(ended[culprit])) is not ParentEffect.CANCEL:
        yield job["id"], f"it was cancelled because of its parent {culprit}, which is {ended[culprit]}"


def other_parents(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I14: the store knows the parents that were enqueued, or those that replace them."""
    for life in times.lives.values():
        said = {_existing(times, parent) for each in life.enqueues for parent in each.facts.get("parents", ())}
        kept = set(jobs.get(life.id, {}).get("parents", ()))
        if life.id in jobs and kept != said:
            yield life.id, f"it was enqueued as a child of {sorted(said)}, and it is one of {sorted(kept)}"


def _existing(times: Times, id_: str) -> str:
    """The job itself, or another that had its key."""
    enqueues = times.lives[id_].enqueues if id_ in times.lives else []
    return next((each.winner for each in enqueues if each.winner is not None), id_)


def _children(times: Times, jobs: Jobs) -> Iterator[tuple[Life, list[str]]]:
    """Jobs with parents of which the history tells; the store's word for which they are, if it has one."""
    for life in list(times.lives.values()):
        if life.enqueues and _stored(life).facts.get("parents"):
            said = jobs.get(life.id, {}).get("parents") or _stored(life).facts["parents"]
            known = [parent for parent in said if parent in times.lives and times.lives[parent].enqueues]
            yield life, known


def _stored(life: Life) -> Enqueued:
    """The enqueue that may have stored it."""
    return next((each for each in life.enqueues if each.step != "fail"), life.enqueues[0])


def _completions(times: Times, id_: str) -> list[Ending]:
    reported = times.lives[id_].settles
    return [each for each in reported if each.status == Status.COMPLETED and each.answer not in ("stale", "failed")]


LINKS: list[tuple[str, Callable[[Times, Jobs, Mapping[str, int]], Iterator[Found]]]] = [
    ("I14", too_early),
    ("I14", wrongly_given),
    ("I14", in_vain),
    ("I14", other_parents),
]
