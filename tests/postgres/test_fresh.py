"""Ids that say that they are new: believed where that is cheap, and found out where it is not true."""

from tests.support.seed import new_job
from windlass.core.jobs.job import Enqueued
from windlass.store.contract import Store


async def test_an_id_that_only_says_that_it_is_new_is_found_out(store: Store) -> None:
    first = new_job(fresh=True)
    assert await store.jobs.enqueue([first]) == [Enqueued(first.id)]
    others = [new_job(fresh=True), first, new_job(fresh=True)]
    answers = await store.jobs.enqueue(others)
    assert [each.existing for each in answers] == [False, True, False]
    assert (await store.operator.counts()).totals["pending"] == 3
