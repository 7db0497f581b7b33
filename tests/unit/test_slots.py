"""Slots: who gets one, who keeps it, who goes to the line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.flow.key_slots import (
    assign_key_slots,
    keeps_key_slot,
    key_position,
    key_slot_after,
    or_waiting_for_key,
)
from windlass.core.jobs.change import NO_WORKER, WAITING_FOR_KEY, JobChange, Timing
from windlass.core.jobs.job import NewJob
from windlass.core.status import FINISHED, Status
from windlass.store.sqlite.limits.key_queue import NO_KEY_SLOTS, KeySlotAssignment, KeyUse, assign, key_queues_of

LIMITS = st.lists(st.none() | st.integers(1, 6), max_size=12)
TAKEN = st.sets(st.integers(0, 8), max_size=8)


@pytest.mark.parametrize(
    ("taken", "limits", "slots"),
    [
        ([], [], []),
        ([], [None], [0]),
        ([], [None, None], [0]),
        ([0], [None], []),
        ([], [3, 3, 3, 3], [0, 1, 2]),
        ([1], [3, 3, 3], [0, 2]),
        ([0, 1], [1, 5], []),
        ([0], [2, 1, 9], [1]),
        ([], [1, 2, 3], [0, 1, 2]),
        ([7], [2], [0]),
    ],
)
def test_the_first_that_wait_get_what_their_limits_leave(
    taken: list[int], limits: list[int | None], slots: list[int]
) -> None:
    assert assign_key_slots(taken, limits) == slots


@given(TAKEN, LIMITS)
def test_slots_are_new_and_no_first_job_left_waiting_could_have_one(
    taken: set[int], limits: list[int | None]
) -> None:
    slots = assign_key_slots(taken, limits)
    held = taken | set(slots)
    assert len(held) == len(taken) + len(slots)
    for earlier, limit in enumerate(limits[: len(slots)]):
        assert len(taken) + earlier < (limit or 1)
    assert assign_key_slots(held, limits[len(slots) :]) == []


@given(TAKEN, LIMITS, st.integers(1, 5))
def test_a_key_queue_read_in_portions_gives_the_same(taken: set[int], limits: list[int | None], portion: int) -> None:
    held, slots = set(taken), list[int]()
    while True:
        given_now = assign_key_slots(held, limits[len(slots) : len(slots) + portion])
        slots += given_now
        held |= set(given_now)
        if len(given_now) < portion:
            break
    assert slots == assign_key_slots(taken, limits)


def test_strict_order_ignores_priority_and_goes_by_being_due() -> None:
    assert key_position(-9, True, 2, "a") > key_position(9, True, 1, "b")
    assert key_position(-9, None, 2, "a") < key_position(9, False, 1, "b")
    assert key_position(0, True, 1, "a") < key_position(0, True, 1, "b")


@pytest.mark.parametrize("strict", [None, False, True])
def test_what_goes_on_keeps_its_slot_and_what_ends_does_not(strict: bool | None) -> None:
    assert keeps_key_slot(Status.PENDING, strict)
    assert not any(keeps_key_slot(status, strict) for status in FINISHED)
    for status in (Status.FAILED, Status.SCHEDULED, Status.BLOCKED):
        assert keeps_key_slot(status, strict) is bool(strict)


def test_only_what_is_due_and_has_a_key_and_no_key_slot_waits_for_it() -> None:
    due, later = Timing(Status.PENDING, None, 5, 7), Timing(Status.SCHEDULED, None, 9, 9)
    parked = Timing(Status.BLOCKED, NO_WORKER, 5, 7)
    assert or_waiting_for_key(due, "k", None) == Timing(Status.BLOCKED, WAITING_FOR_KEY, 5, 7)
    assert or_waiting_for_key(due, "", None).reason == WAITING_FOR_KEY, "an empty key is a key"
    assert or_waiting_for_key(due, "k", 0) is due
    assert or_waiting_for_key(due, None, None) is due
    assert or_waiting_for_key(later, "k", None) is later
    assert or_waiting_for_key(parked, "k", None) is parked


@pytest.mark.parametrize(
    ("status", "change", "moves", "after"),
    [
        (Status.PENDING, JobChange(priority=1), False, 0),
        (Status.PENDING, JobChange(delay=0), False, 0),
        (Status.PENDING, JobChange(priority=1), True, None),
        (Status.SCHEDULED, JobChange(delay=5), False, None),
        (Status.SCHEDULED, JobChange(run_at=5), False, None),
        (Status.SCHEDULED, JobChange(priority=1), False, 0),
        (Status.FAILED, JobChange(delay=5), False, None),
        (Status.FAILED, JobChange(payload="{}"), False, 0),
        (Status.BLOCKED, JobChange(delay=0), False, 0),
    ],
)
def test_another_queue_or_a_later_time_gives_the_slot_up(
    status: Status, change: JobChange, moves: bool, after: int | None
) -> None:
    assert key_slot_after(0, Timing(status, None, 5, 7), change, moves) == after


def job(id_: str, key: str | None = "k", priority: int = 0) -> NewJob:
    return NewJob(id=id_, type="t", payload="{}", concurrency_key=key, priority=priority)


def test_new_jobs_at_a_free_key_get_key_slots_in_the_order_of_the_key_queue() -> None:
    jobs = [job("a"), job("b", priority=1), job("c", "other"), job("d", None)]
    assert key_queues_of(jobs) == {("default", "k"), ("default", "other")}
    assert assign([(each, 1) for each in jobs], {}) == KeySlotAssignment({"b": 0, "c": 0}, [])


def test_new_jobs_rank_behind_those_that_wait_already() -> None:
    line = ("default", "k")
    assert assign([(job("b"), 5)], {line: KeyUse((0,), (0, 4, "a"))}) == NO_KEY_SLOTS
    assert assign([(job("b"), 5)], {line: KeyUse((0,), None)}) == NO_KEY_SLOTS


def test_a_new_first_job_of_a_key_queue_is_reported() -> None:
    line = ("default", "k")
    assert assign([(job("b", priority=1), 5)], {line: KeyUse((0,), (0, 4, "a"))}) == KeySlotAssignment({}, [line])
