"""Which jobs are believed to be new: those that this process made, and has not handed in before."""

import pickle

import msgspec

from windlass.client.runtime.process_id import this_process
from windlass.client.runtime.store_handle import StoreHandle, memory_handle
from windlass.core.ids import new_id
from windlass.core.jobs.job import NewJob


def made(fresh: str | None = None, id_: str | None = None) -> NewJob:
    """A job whose id was made here, unless said otherwise."""
    return NewJob(id=id_ or new_id(), type="t", payload="{}", fresh=this_process() if fresh is None else fresh)


def believed(berth: StoreHandle, *jobs: NewJob) -> list[bool]:
    """Of each, whether it is still fresh when it goes to the store."""
    return [bool(job.fresh) for job in berth.mark_repeated(list(jobs))]


def test_a_new_job_is_new_once() -> None:
    berth, job = memory_handle(), made()
    assert believed(berth, job) == [True]
    assert believed(berth, job) == [False]
    assert believed(berth, made(), made()) == [True, True]
    twice = made()
    assert believed(berth, twice, twice) == [False, False]


def test_a_job_that_another_process_made_may_have_been_handed_in_there() -> None:
    elsewhere = made("1-elsewhere")
    kept = msgspec.json.decode(msgspec.json.encode(elsewhere), type=NewJob)
    sent = pickle.loads(pickle.dumps(made("1-elsewhere")))
    assert believed(memory_handle(), kept) == [False]
    assert believed(memory_handle(), sent) == [False]


def test_an_id_that_a_caller_gave_makes_no_later_one_less_new() -> None:
    berth = memory_handle()
    assert believed(berth, made("", "f0000000-0000-4000-8000-000000000000")) == [False]
    assert believed(berth, made()) == [True]
