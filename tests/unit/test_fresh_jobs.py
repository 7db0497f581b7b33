"""Which jobs are believed to be new: those that this process made, and has not enqueued before."""

import pickle
import threading

import msgspec

from windlass.client.runtime.process_id import this_process
from windlass.client.runtime.store_handle import StoreHandle, memory_handle
from windlass.core.ids import new_id
from windlass.core.jobs.job import NewJob


def made(fresh: str | None = None, id_: str | None = None) -> NewJob:
    """A job whose id was made here, unless said otherwise."""
    return NewJob(id=id_ or new_id(), type="t", payload="{}", fresh=this_process() if fresh is None else fresh)


def believed(handle: StoreHandle, *jobs: NewJob) -> list[bool]:
    """Of each, whether it is still fresh when it goes to the store."""
    return [bool(job.fresh) for job in handle.mark_repeated(list(jobs))]


def test_a_new_job_is_new_once() -> None:
    handle, job = memory_handle(), made()
    assert believed(handle, job) == [True]
    assert believed(handle, job) == [False]
    assert believed(handle, made(), made()) == [True, True]
    twice = made()
    assert believed(handle, twice, twice) == [False, False]


def test_a_job_that_another_process_made_may_have_been_enqueued_there() -> None:
    elsewhere = made("1-elsewhere")
    kept = msgspec.json.decode(msgspec.json.encode(elsewhere), type=NewJob)
    sent = pickle.loads(pickle.dumps(made("1-elsewhere")))
    assert believed(memory_handle(), kept) == [False]
    assert believed(memory_handle(), sent) == [False]


def test_an_id_that_a_caller_gave_makes_no_later_one_less_new() -> None:
    handle = memory_handle()
    assert believed(handle, made("", "f0000000-0000-4000-8000-000000000000")) == [False]
    assert believed(handle, made()) == [True]


def test_an_older_job_of_another_thread_does_not_make_a_newer_one_new_again() -> None:
    handle, older, newer = memory_handle(), made(), made()
    reported: list[bool] = []
    other = threading.Thread(target=lambda: reported.extend(believed(handle, newer)))

    class Interrupted(str):
        """An id that is compared just as the other thread runs."""

        __slots__ = ()

        def __gt__(self, other_id: str) -> bool:
            other.start()
            other.join(0.2)
            return str(self) > other_id

    believed(handle, msgspec.structs.replace(older, id=Interrupted(older.id)))
    other.join()
    assert reported == [True]
    assert believed(handle, newer) == [False]
