"""enqueue_many takes any iterable, reads it once, in the caller's thread, and stores all of it or nothing."""

import threading
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from typing import Any

import pytest

from tests.client.labour import total
from windlass import App, InvalidOption, Task
from windlass.core.jobs.job import NewJob

Work = Task[[int], None, None]


@pytest.fixture
def work(app: App) -> Work:
    """A task to enqueue."""

    @app.task(type="t")
    def work(number: int) -> None: ...

    return work


class Once:
    """An iterable that is no iterator and gives its jobs a single time, as a cursor of a database does."""

    def __init__(self, jobs: list[NewJob]) -> None:
        self._jobs = jobs

    def __iter__(self) -> Iterator[NewJob]:
        jobs, self._jobs = self._jobs, []
        return iter(jobs)


FORMS: dict[str, Callable[[Work], Iterable[NewJob]]] = {
    "generator": lambda work: (work.job(number) for number in range(3)),
    "map": lambda work: map(work.job, range(3)),
    "filter": lambda work: filter(None, [work.job(number) for number in range(3)]),
    "values": lambda work: {number: work.job(number) for number in range(3)}.values(),
    "tuple": lambda work: tuple(work.job(number) for number in range(3)),
    "read once": lambda work: Once([work.job(number) for number in range(3)]),
}


@pytest.mark.parametrize("form", FORMS)
def test_every_job_of_an_iterable_is_stored(app: App, work: Work, form: str) -> None:
    handles = app.enqueue_many(FORMS[form](work))
    assert [app.jobs.get(handle.id).payload["number"] for handle in handles] == [0, 1, 2]
    assert total(app) == 3


@pytest.mark.parametrize("form", FORMS)
async def test_the_async_form_stores_every_job_of_an_iterable(app: App, work: Work, form: str) -> None:
    handles = await app.aenqueue_many(FORMS[form](work))
    assert [(await app.jobs.aget(handle.id)).payload["number"] for handle in handles] == [0, 1, 2]
    assert sum((await app.stats.acounts()).totals.values()) == 3


def test_an_iterable_may_be_given_by_name(app: App, work: Work) -> None:
    assert len(app.enqueue_many(jobs=map(work.job, range(3)))) == 3
    assert total(app) == 3


def test_an_iterator_without_jobs_stores_none(app: App) -> None:
    assert app.enqueue_many(iter(())) == []
    assert total(app) == 0


def broken(work: Work) -> Iterator[NewJob]:
    yield work.job(1)
    yield work.job(2)
    raise ZeroDivisionError("after two jobs")


def test_an_iterator_that_raises_half_way_stores_nothing(app: App, work: Work) -> None:
    with pytest.raises(ZeroDivisionError, match="after two jobs"):
        app.enqueue_many(broken(work))
    assert total(app) == 0


async def test_the_async_form_of_an_iterator_that_raises_half_way_stores_nothing(app: App, work: Work) -> None:
    with pytest.raises(ZeroDivisionError, match="after two jobs"):
        await app.aenqueue_many(broken(work))
    assert sum((await app.stats.acounts()).totals.values()) == 0


def test_one_entry_that_is_no_job_stores_nothing(app: App, work: Work) -> None:
    entries: Any = (each for each in [work.job(1), work, work.job(2)])
    with pytest.raises(InvalidOption, match=r"^jobs\[1\]: is not a job; make it with task\.job"):
        app.enqueue_many(entries)
    assert total(app) == 0


def test_a_blocking_call_reads_the_iterator_in_the_callers_thread(app: App, work: Work) -> None:
    """It may use what belongs to that thread: a connection, a context variable, a blocking verb of ours."""
    threads = []

    def jobs() -> Iterator[NewJob]:
        threads.append(threading.current_thread())
        work.enqueue(1)
        yield work.job(2)

    app.enqueue_many(jobs())
    assert threads == [threading.current_thread()]
    assert total(app) == 2


async def collected(work: Work) -> AsyncIterator[NewJob]:
    """Jobs that come one by one."""
    yield work.job(1)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (lambda work: work.job(1), r"^jobs: is one job; give a list of jobs: \[job\]$"),
        (lambda work: 5, r"^jobs: must be an iterable of jobs, not int"),
        (lambda work: None, r"^jobs: must be an iterable of jobs, not NoneType"),
        (
            lambda work: collected(work),
            r"^jobs: is an async iterable; collect it first: \[job async for job in \.\.\.\]",
        ),
        (lambda work: work, r"^jobs: must be an iterable of jobs, not Task"),
        (lambda work: "ab", r"^jobs\[0\]: is not a job"),
    ],
    ids=["one job", "number", "nothing", "async", "task", "text"],
)
async def test_what_is_no_iterable_of_jobs_is_said(
    app: App, work: Work, given: Callable[[Work], Any], problem: str
) -> None:
    with pytest.raises(InvalidOption, match=problem):
        await app.aenqueue_many(given(work))
