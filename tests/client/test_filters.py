"""Lists of jobs: pages that can be walked over, all pages, counts, and verbs on all that match."""

from collections.abc import Callable

import pytest

from tests.client.labour import Labour
from windlass import App, InvalidOption, Queue, QueueNotFound, Status, Task, UseAsync, chain, group
from windlass.client.verbs import filters, jobs
from windlass.store.redis.operator import read_jobs as redis_walk
from windlass.store.sql import read_jobs


@pytest.fixture
def task(app: App) -> Task[[int], int, int]:
    """A task to enqueue."""

    @app.task(type="t", queue="q")
    def task(number: int) -> int:
        return number

    return task


@pytest.fixture
def other(app: App) -> Task[[int], int, int]:
    """Another one."""

    @app.task(type="o")
    def other(number: int) -> int:
        return number

    return other


def numbers(found: object) -> list[int]:
    return [job.payload["number"] for job in found]  # type: ignore[attr-defined]


def test_a_page_is_a_sequence(app: App, task: Task[[int], int, int]) -> None:
    assert not app.jobs.list()
    app.enqueue_many(task.job(number) for number in range(5))
    page = app.jobs.list(limit=3)
    assert page
    assert len(page) == 3
    assert numbers(page) == [4, 3, 2] == numbers(page.items)
    assert page[0].payload == {"number": 4}
    assert numbers(page[1:]) == [3, 2]
    assert page[-1] in page


def test_links_are_a_sequence(app: App, task: Task[[int], int, int]) -> None:
    handle = chain(task.job(1), task, task).enqueue()
    links = app.jobs.links(handle)
    assert links
    assert [job.id for job in links] == [each.id for each in handle.links]
    assert (len(links), links[-1].id, len(links[1:])) == (3, handle.id, 2)


def test_counts_are_by_queue(app: App, task: Task[[int], int, int], other: Task[[int], int, int]) -> None:
    assert not app.stats.counts()
    app.enqueue_many([task.job(1), task.job(2), other.job(3)])
    counts = app.stats.counts()
    assert counts
    assert (sorted(counts), len(counts)) == (["default", "q"], 2)
    assert counts["q"]["pending"] == 2
    assert "z" not in counts
    with pytest.raises(KeyError):
        counts["z"]


def test_a_task_is_taken_wherever_a_type_is(
    app: App, task: Task[[int], int, int], other: Task[[int], int, int]
) -> None:
    app.enqueue_many([task.job(1), other.job(2)])
    assert numbers(app.jobs.list(type=task)) == [1] == numbers(app.jobs.list(type="t"))
    assert app.jobs.count(type=other.using(priority=1)) == 1
    assert app.stats.timeline(type=task).by == "queue"
    assert app.enqueue(task, {"number": 3}).job().type == "t"


async def test_iter_goes_through_all_pages(
    app: App, task: Task[[int], int, int], other: Task[[int], int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_BATCH", 2)
    await app.aenqueue_many([*(task.job(number) for number in range(5)), other.job(9)])
    assert numbers([job async for job in app.jobs.aiter(type=task)]) == [4, 3, 2, 1, 0]
    assert [job async for job in app.jobs.aiter(tag="none")] == []
    with pytest.raises(UseAsync, match="async for job in aiter"):
        next(app.jobs.iter())
    await app.aclose()


def test_iter_without_a_loop_goes_through_all_pages(
    app: App, task: Task[[int], int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(jobs, "_BATCH", 2)
    app.enqueue_many(task.job(number) for number in range(5))
    assert numbers(app.jobs.iter(queue="q")) == [4, 3, 2, 1, 0]
    assert list(app.jobs.iter(status="dead")) == []


def test_jobs_are_counted_by_any_filter(
    app: App, task: Task[[int], int, int], other: Task[[int], int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "PAGE", 2)
    app.enqueue_many([*(task.using(tags=["a"]).job(number) for number in range(5)), other.using(delay=60).job(9)])
    assert app.jobs.count() == 6
    assert app.jobs.count(queue="q") == app.jobs.count(queue="q", status="pending") == 5
    assert app.jobs.count(queue="never-used") == 0
    assert app.jobs.count(status=["pending", "scheduled", "pending"]) == 6
    assert app.jobs.count(type=task) == app.jobs.count(tag="a", status="pending") == 5
    assert app.jobs.count(type=task, status="dead") == 0


def test_a_filter_that_there_is_not_is_refused(app: App) -> None:
    for verb in (app.jobs.list, app.jobs.count, app.jobs.cancel_all):
        with pytest.raises(InvalidOption, match="stauts: is not a filter; did you mean status"):
            verb(stauts="dead")  # type: ignore[call-arg]


def test_verbs_on_every_job_want_it_said(app: App, task: Task[[int], int, int], labour: Labour) -> None:
    app.enqueue_many(task.job(number) for number in range(3))
    for verb in (app.jobs.cancel_all, app.jobs.retry_all, app.jobs.delete_all):
        with pytest.raises(InvalidOption, match="all: no filter is given; for every job of the store pass all=True"):
            verb(queue=None)
    assert app.jobs.count(status="pending") == 3
    assert app.jobs.cancel_all("too many", all=True) == 3
    assert {job.reason for job in app.jobs.iter()} == {"too many"}
    assert app.jobs.retry_all(all=True) == 3
    assert app.jobs.cancel_all(type=task) == 3
    assert app.jobs.delete_all(all=True) == 3
    assert app.jobs.count() == 0


def test_an_unused_queue_is_not_found(app: App, task: Task[[int], int, int]) -> None:
    assert app.queues.get("q").name == "q"
    assert app.queues.get("default").rules.max_attempts == 3
    with pytest.raises(QueueNotFound, match=r"no queue 'qq'; did you mean 'q'\? There are default, q") as missing:
        app.queues.get("qq")
    assert (missing.value.name, missing.value.code) == ("qq", "queue_not_found")


VERBS_ON_QUEUES: dict[str, Callable[[App, str], object]] = {
    "set": lambda app, name: app.queues.set(name, max_attempts=5),
    "reset": lambda app, name: app.queues.reset(name),
    "pause": lambda app, name: app.queues.pause(name, "5m"),
    "resume": lambda app, name: app.queues.resume(name),
    "close": lambda app, name: app.queues.close(name),
    "open": lambda app, name: app.queues.open(name),
    "purge": lambda app, name: app.queues.purge(name),
}


@pytest.mark.parametrize("verb", VERBS_ON_QUEUES)
def test_no_verb_acts_on_a_misspelt_queue(app: App, task: Task[[int], int, int], verb: str) -> None:
    app.queue("images")
    with pytest.raises(QueueNotFound, match="no queue 'imagse'; did you mean 'images'"):
        VERBS_ON_QUEUES[verb](app, "imagse")
    assert "imagse" not in [queue.name for queue in app.queues.list()]
    VERBS_ON_QUEUES[verb](app, "images")


def test_a_queue_can_be_added_and_paused_before_its_first_job(app: App, task: Task[[int], int, int]) -> None:
    assert app.queues.add("late") == Queue(name="late")
    assert app.queues.pause("late").paused
    assert app.queues.add("late").paused
    task.using(queue="late").enqueue(1)
    assert app.queues.get("late").paused


def test_a_queue_that_only_the_app_names_can_be_paused(app: App, task: Task[[int], int, int]) -> None:
    assert app.queues.pause("default").paused


@pytest.fixture
def short_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    """A call of the store reads two jobs."""
    monkeypatch.setattr(redis_walk, "MAX_WALKED", 2)
    monkeypatch.setattr(read_jobs, "MAX_ROWS_PER_PAGE", 2)


@pytest.mark.usefixtures("short_searches")
def test_rare_matches_are_searched_for_until_a_page_is_full(app: App, task: Task[[int], int, int]) -> None:
    for number in range(3):
        task.using(tags=["rare"]).enqueue(number)
        app.enqueue_many(task.job(10 + other) for other in range(10))
    page = app.jobs.list(tag="rare", limit=2)
    assert numbers(page) == [2, 1]
    page = app.jobs.list(tag="rare", limit=2, cursor=page.next_cursor)
    assert (numbers(page), page.next_cursor) == ([0], None)


@pytest.mark.usefixtures("short_searches")
def test_a_search_is_bounded_and_its_cursor_continues_it(
    app: App, task: Task[[int], int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(filters, "MAX_CALLS_PER_PAGE", 3)
    task.using(tags=["rare"]).enqueue(1)
    app.enqueue_many(task.job(10 + other) for other in range(60))  # a call reads some of each bucket
    page = app.jobs.list(tag="rare")
    assert not page
    while not page:
        assert page.next_cursor is not None
        page = app.jobs.list(tag="rare", cursor=page.next_cursor)
    assert numbers(page) == [1]
    assert numbers(app.jobs.iter(tag="rare")) == [1]


def test_lists_of_one_page_have_no_cursor(app: App, task: Task[[int], int, int]) -> None:
    assert app.jobs.list(status=Status.PENDING).next_cursor is None


def test_jobs_without_a_time_in_their_ids_are_listed_after_the_newest(
    app: App, task: Task[[int], int, int], other: Task[[int], int, int]
) -> None:
    app.enqueue_many([task.job(1), other.job(2)])
    named = group([task.job(3), task.job(4)], id="of-a-name").enqueue()
    mine = task.using(id="f0000000-0000-4000-8000-000000000000").enqueue(5).id
    app.enqueue_many([task.job(6), other.job(7)])
    assert numbers(app.jobs.list(type=other)) == [7, 2]
    found = [job.id for job in app.jobs.list()]
    assert len(found) == len(set(found)) == 8
    assert [id_[14] for id_ in found[:4]] == ["7"] * 4
    assert {named.id, mine} <= set(found[4:])
    assert numbers(app.jobs.list(type=task))[:2] == [6, 1]
    walked, cursor = [], None
    for _ in range(10):
        page = app.jobs.list(limit=3, cursor=cursor)
        walked += [job.id for job in page]
        if (cursor := page.next_cursor) is None:
            break
    assert walked == found == [job.id for job in app.jobs.iter()]
    assert sorted(numbers(app.jobs.list(parent=named))) == [3, 4]
