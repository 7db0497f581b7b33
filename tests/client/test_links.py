"""The links of a chain, found from any of them, on every store."""

from windlass import PREVIOUS, App, chain


def test_the_links_of_a_chain_are_found_from_any_of_them(app: App) -> None:
    @app.task
    def step(number: int) -> int:
        return number

    ids = [link.id for link in chain(step.job(1), step, step, step).enqueue().links]
    for place, id_ in enumerate(ids, 1):
        found = app.jobs.links(id_)
        assert [job.id for job in found.jobs] == ids
        assert (found.place, found.begins, found.ends) == (place, True, True)
    near = app.jobs.links(ids[2], limit=1)
    assert ([job.id for job in near.jobs], near.place, near.begins, near.ends) == (ids[1:], 2, False, True)
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
