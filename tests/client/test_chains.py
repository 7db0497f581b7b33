"""chain(...): links in one call, results passed on with their types, and what cannot work refused at once."""

import pickle
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from windlass import PREVIOUS, App, Context, Dead, InvalidInput, InvalidOption, InvalidPayload, TaskSet, chain
from windlass.core.status import Status
from windlass.errors import JobCancelled, NotAllowedNow
from windlass.testing import run_all


@dataclass
class Page:
    url: str
    size: int


app = App.testing()
seen: list[Any] = []


@app.task
def fetch(number: int) -> Page:
    return Page(f"/{number}", number)


@app.task
async def measure(page: Page, factor: int = 1) -> int:
    assert isinstance(page, Page)
    return page.size * factor


@app.task
def note(what: str, value: Any = None, *, again: Any = None) -> str:
    seen.append((what, value, again))
    return what


@app.task
def fail() -> None:
    raise Dead("hopeless")


@app.task
def nothing() -> int:
    return 5


@app.task(concurrency_key="page:{what}")
def keyed(what: str) -> str:
    return what


@app.task
def shown(ctx: Context, page: Page) -> dict[str, Any]:
    return {"payload": ctx.job.payload, "parent": ctx.job.parent}


@app.task
def large() -> str:
    return "x" * 70_000


@app.task
def pair(left: int, right: int) -> int:
    return left + right


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    seen.clear()
    yield
    app.close()


def test_results_are_passed_on_with_the_types_of_the_links() -> None:
    handle = chain(fetch.job(7), measure, note.job("got", PREVIOUS)).enqueue()
    run_all(app)
    assert seen == [("got", 7, None)]
    assert handle.result() == "got"
    assert [each.result() for each in handle.links] == [Page("/7", 7), 7, "got"]


def test_all_links_are_enqueued_together_and_know_each_other() -> None:
    handle = chain(fetch.job(1), measure, note.job("x", PREVIOUS)).enqueue()
    first, second, third = (app.jobs.get(each.id) for each in handle.links)
    assert [job.status for job in (first, second, third)] == ["pending", "blocked", "blocked"]
    assert (first.parent, second.parent, third.parent) == (None, first.id, second.id)
    assert {job.flow for job in (first, second, third)} == {first.id}
    assert handle.id == third.id


async def test_a_chain_can_be_enqueued_from_an_event_loop() -> None:
    handle = await chain(nothing, note.job("x", PREVIOUS)).aenqueue()
    assert [each.id for each in handle.links][-1] == handle.id
    assert (await app.jobs.aget(handle.id)).status is Status.BLOCKED
    await app.aclose()


def test_one_result_may_go_into_several_parameters() -> None:
    chain(nothing.job(), note.job("both", PREVIOUS, again=PREVIOUS)).enqueue()
    run_all(app)
    assert seen == [("both", 5, 5)]


def test_a_link_without_previous_only_comes_after() -> None:
    chain(note.job("first"), note.job("second", 3)).enqueue()
    run_all(app)
    assert seen == [("first", None, None), ("second", 3, None)]


def test_a_bare_task_that_needs_nothing_may_be_the_first() -> None:
    handle = chain(nothing, note.job("x", PREVIOUS)).enqueue()
    run_all(app)
    assert handle.result() == "x"


def test_what_the_handler_sees_of_its_job_has_the_result_in_it() -> None:
    handle = chain(fetch.job(3), shown).enqueue()
    run_all(app)
    assert handle.result() == {"payload": {"page": {"url": "/3", "size": 3}}, "parent": handle.links[0].id}


def test_a_result_that_does_not_fit_makes_the_link_dead_and_says_so() -> None:
    handle = chain(nothing, measure, note.job("x", PREVIOUS)).enqueue()
    run_all(app)
    dead, cancelled = (app.jobs.get(each.id) for each in handle.links[1:])
    assert (dead.status, cancelled.status) == ("dead", "cancelled")
    assert dead.error is not None
    assert "page" in dead.error.message
    assert dead.reason == "the result of its parent does not fit the task"
    with pytest.raises(JobCancelled, match=dead.id):
        handle.result()


@pytest.mark.parametrize("typed", [True, False])
def test_a_result_that_was_too_large_to_be_kept_is_not_given_to_the_next_link(typed: bool) -> None:
    handle = chain(large, shown if typed else note.job("x", PREVIOUS)).enqueue()
    run_all(app)
    first, second = (app.jobs.get(each.id) for each in handle.links)
    assert (first.status, second.status, second.attempt) == ("completed", "dead", 1)
    assert second.reason == "the result of its parent was not kept"
    assert second.error is not None
    assert f"gets the result of {first.id}, which was not kept: result: is 70,002 bytes" in second.error.message


def test_a_retry_of_the_dead_link_brings_the_rest_back_and_one_of_the_rest_names_it() -> None:
    handle = chain(fail.job(), note.job("x")).enqueue()
    run_all(app)
    with pytest.raises(NotAllowedNow, match="retry that one first") as refused:
        app.jobs.retry(handle.id)
    assert refused.value.parent == handle.links[0].id
    app.jobs.retry(handle.links[0].id)
    assert app.jobs.get(handle.id).status is Status.BLOCKED


def test_a_link_whose_parent_is_not_kept_any_more_cannot_be_retried_and_that_is_said() -> None:
    handle = chain(fail, note.job("a")).enqueue()
    run_all(app)
    app.jobs.delete(handle.links[0].id)
    with pytest.raises(NotAllowedNow, match="it is not kept any more, so enqueue a new job"):
        app.jobs.retry(handle.id)


def test_the_options_of_each_link_are_its_own() -> None:
    later = note.using(delay=timedelta(minutes=1), queue="mail", priority=3)
    handle = chain(nothing, later.job("x", PREVIOUS)).enqueue()
    run_all(app)
    job = app.jobs.get(handle.id)
    assert (job.status, job.queue, job.priority) == ("scheduled", "mail", 3)
    app.clock.advance(minutes=1)
    run_all(app)
    assert handle.result() == "x"


def test_enqueueing_a_chain_again_adds_nothing() -> None:
    links = chain(nothing, note.job("x", PREVIOUS))
    first, second = links.enqueue(), links.enqueue()
    assert [each.id for each in first.links] == [each.id for each in second.links]
    assert second.existing


def test_a_chain_of_a_task_set_goes_to_its_app() -> None:
    tasks, home = TaskSet(), App.testing()

    @tasks.task
    def count(number: int) -> int:
        return number + 1

    home.include(tasks)
    handle = chain(count.job(1), count, count).enqueue()
    run_all(home)
    assert handle.result() == 4
    home.close()


def test_a_job_that_is_sent_elsewhere_is_a_plain_job() -> None:
    job = note.job("x")
    assert pickle.loads(pickle.dumps(job)) == job.plain()


WRONG: dict[str, tuple[Any, str, str]] = {
    "PREVIOUS alone": (lambda: note.enqueue("x", PREVIOUS), "value", "chain"),
    "PREVIOUS in a bulk": (lambda: app.enqueue_many([note.job("x", PREVIOUS)]), "value", "chain"),
    "PREVIOUS in the first link": (lambda: chain(note.job("x", PREVIOUS), note.job("y")), "link 1", "value"),
    "a first task that needs an argument": (lambda: chain(note, note.job("y")), "what", "missing"),
    "PREVIOUS for no parameter": (lambda: note.job("x", other=PREVIOUS), "other", "not an argument"),  # type: ignore[call-arg]
    "PREVIOUS within a value": (lambda: note.job("x", [PREVIOUS]), "value[0]", "whole argument"),
    "a bare task without a parameter": (lambda: chain(nothing, nothing), "PREVIOUS", "no parameter"),
    "one that needs more than the result": (lambda: chain(nothing, pair), "right", "missing"),
    "no link": (lambda: chain(nothing, 5), "link 2", "int"),  # type: ignore[call-overload]
    "a list of links": (lambda: chain([nothing, note.job("x")]), "link 1", "of a list"),  # type: ignore[call-overload]
    "the same job twice": (lambda: chain(*[note.job("x")] * 2), "link 2", "same job as link 1"),
    "a parent of its own": (lambda: chain(nothing, note.using(parent=ID).job("x")), "link 2", "parent"),
    "a key of what is unknown": (lambda: chain(nothing, keyed), "concurrency_key", "PREVIOUS"),
}
ID = "0198c0de-0000-7000-8000-000000000001"


@pytest.mark.parametrize("case", WRONG)
def test_what_cannot_work_is_refused_at_once_and_named(case: str) -> None:
    make, field, problem = WRONG[case]
    with pytest.raises(InvalidInput, match=problem) as refused:
        make()
    assert refused.value.field == field
    assert not app.jobs.list().items


def test_a_source_that_keeps_nothing_is_refused() -> None:
    app.queues.add("brief")
    app.queues.set("brief", retention={"completed": 0})
    with pytest.raises(InvalidOption, match="keeps completed jobs for 0 s"):
        chain(nothing.using(queue="brief").job(), note.job("x", PREVIOUS)).enqueue()
    assert not app.jobs.list().items


def test_why_names_the_parent_a_link_waits_for_and_what_to_do_when_that_died() -> None:
    handle = chain(fail.job(), note.job("x")).enqueue()
    first = handle.links[0].id
    (why,) = (each for each in app.jobs.why(handle.id).reasons if each.code == "awaits_parent")
    assert why.jobs == (first,)
    assert f"It waits for {first} (pending for " in why.text
    run_all(app)
    why = app.jobs.why(handle.id).first
    assert f"its parent {first} is dead" in why.text
    assert why.do is not None
    assert why.do.endswith(f"windlass jobs retry {first}")


def test_the_payload_of_a_link_has_only_its_own_arguments() -> None:
    handle = chain(nothing, note.job("x", PREVIOUS)).enqueue()
    assert app.jobs.get(handle.id).payload == {"what": "x"}
    with pytest.raises(InvalidPayload):
        note.job(PREVIOUS, "y").task.enqueue()


def test_a_result_within_a_text_is_refused(app: App) -> None:
    with pytest.raises(InvalidPayload, match=r"^PREVIOUS: has no value yet: give it as an argument of its own"):
        f"invoice {PREVIOUS}"

    @app.task
    def charge() -> None: ...

    with (
        pytest.raises(InvalidPayload, match=r"^Node\('pay'\)\.result: has no value yet"),
        app.flow("order") as flow,
    ):
        f"invoice {flow.add(charge.job(), name='pay').result}"
    assert app.jobs.count() == 0
