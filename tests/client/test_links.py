"""The links of a chain, found from any of them, on every store."""

import pytest

from windlass import PREVIOUS, App, JobCancelled, NotAllowedNow, chain
from windlass.client.verbs import links


def test_the_links_of_a_chain_are_found_from_any_of_them(app: App) -> None:
    @app.task
    def step(number: int) -> int:
        return number

    ids = [link.id for link in chain(step.job(1), step, step, step).enqueue().links]
    for place, id_ in enumerate(ids, 1):
        found = app.jobs.links(id_)
        assert [job.id for job in found.jobs] == ids
        assert (found.number, found.begins, found.ends) == (place, True, True)
    near = app.jobs.links(ids[2], limit=1)
    assert ([job.id for job in near.jobs], near.number, near.begins, near.ends) == (ids[1:], 2, False, True)
    first = app.jobs.links(ids[0], limit=1)
    assert ([job.id for job in first.jobs], first.ends) == (ids[:2], False)
    alone = app.jobs.links(step.enqueue(1).id)
    assert (len(alone.jobs), alone.before, alone.after) == (1, None, None)


def test_links_in_other_queues_are_found_and_children_of_another_kind_are_not(app: App) -> None:
    @app.task
    def step(number: int) -> int:
        return number

    later = step.using(queue="later", delay=60)
    ids = [link.id for link in chain(step.job(1), later.job(PREVIOUS), step).enqueue().links]
    step.using(parent=ids[0]).enqueue(2)
    found = app.jobs.links(ids[1])
    assert [job.id for job in found.jobs] == ids
    assert [found.before and found.before.id, found.after and found.after.id] == [ids[0], ids[2]]
    assert [job.queue for job in found.jobs] == ["default", "later", "default"]


def test_a_result_of_the_last_link_says_which_link_failed(app: App) -> None:
    @app.task
    def step(number: int) -> int:
        return number

    handle = chain(step.job(1), step, step.using(queue="other"), step).enqueue()
    first, second, third, last = (link.id for link in handle.links)
    app.jobs.cancel(first, "no such card")
    began = f"it began with step {first}, which is cancelled: no such card"
    with pytest.raises(JobCancelled, match=f"its parent {third} is cancelled; {began}"):
        handle.result(timeout=5)
    why = app.jobs.why(last).first
    assert why.text.endswith(f"its parent {third} is cancelled. I{began[1:]}.")
    assert (why.do, why.jobs) == (f"to run that one again, and then this: windlass jobs retry {first}", (first,))
    with pytest.raises(NotAllowedNow, match=f"its parent {third} has not completed: retry {first} first"):
        app.jobs.retry(last)
    with pytest.raises(NotAllowedNow, match=f"its parent {first} has not completed: retry that one first"):
        app.jobs.retry(second)
    app.jobs.retry(first)
    assert [job.status.value for job in app.jobs.links(last).jobs] == ["pending", "blocked", "blocked", "blocked"]


def test_a_wait_for_the_last_link_says_at_which_one_the_chain_is(app: App) -> None:
    @app.task
    def step(number: int) -> int:
        return number

    handle = chain(step.using(delay=60).job(1), step, step.using(queue="other"), step).enqueue()
    first, second, third, last = (link.id for link in handle.links)
    with pytest.raises(
        TimeoutError, match=f"is still blocked after 0 s; .*its chain is at step {first}, which is sched"
    ):
        handle.result(timeout=0)
    (why,) = (each for each in app.jobs.why(last).reasons if each.code == "awaits_parent")
    assert (why.text.count(first), why.jobs) == (1, (third,))
    assert f"Its chain is at step {first}, which is scheduled." in why.text
    assert why.do == f"to see what holds it up: windlass jobs why {first}"
    (near,) = (each for each in app.jobs.why(second).reasons if each.code == "awaits_parent")
    assert "Its chain" not in near.text
    assert near.do == f"to see what holds it up: windlass jobs why {first}"


def test_the_next_link_is_found_behind_many_children(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(links, "MAX_CHILDREN", 2)

    @app.task
    def step(number: int) -> int:
        return number

    ids = [link.id for link in chain(step.job(1), step).enqueue().links]
    app.enqueue_many([step.using(parent=ids[0]).job(n) for n in range(3)])
    found = app.jobs.links(ids[0])
    assert ([job.id for job in found.jobs], found.ends) == (ids, True)
