"""Lists: no script walks far, and what is rare is found all the same."""

from tests.support.seed import enqueue, new_job, put
from windlass.core.ids import JobId
from windlass.core.status import Status
from windlass.store.contract import Store
from windlass.store.records import JobFilter

MANY = 12_000
"""More than the walks of one page."""


async def pages(store: Store, wanted: JobFilter, limit: int = 10) -> list[list[JobId]]:
    """All pages of a list."""
    found, cursor = [], None
    while True:
        page = await store.operator.list(wanted, limit, cursor)
        found.append([job.id for job in page.items])
        cursor = page.next_cursor
        if cursor is None:
            return found


async def test_a_rare_match_makes_short_pages_and_is_found(store: Store) -> None:
    rare = [*await enqueue(store, 1, tenant="rare"), *await enqueue(store, 1, tenant="rare", queue="other")]
    for _ in range(MANY // 1000):
        await store.jobs.enqueue([new_job() for _ in range(1000)])
    found = await pages(store, JobFilter(tenant="rare"))
    assert len(found) > 1
    assert [id_ for page in found for id_ in page] == rare[::-1]
    assert await store.operator.select(JobFilter(tenant="rare"), 10, None) == rare
    assert await store.operator.select(JobFilter(type="no such type"), 10, None) == []


async def test_what_few_jobs_are_is_found_behind_many_others_in_one_page(store: Store) -> None:
    few = {status: await put(store, status) for status in (Status.SCHEDULED, Status.RUNNING, Status.DEAD)}
    for _ in range(MANY // 1000):
        await store.jobs.enqueue([new_job() for _ in range(1000)])
    for status, id_ in few.items():
        assert await pages(store, JobFilter(status=(status,))) == [[id_]]
    assert await pages(store, JobFilter(status=tuple(few))) == [sorted(few.values(), reverse=True)]


async def test_queues_are_merged_by_id_whatever_the_size_of_a_page(store: Store) -> None:
    ids = [id_ for number in range(30) for id_ in await enqueue(store, 1, queue=f"q{number % 4}")]
    for limit in (1, 3, 7, 30, 31):
        found = await pages(store, JobFilter(), limit)
        assert [id_ for page in found for id_ in page] == ids[::-1]
    assert await store.operator.select(JobFilter(), 7, ids[4]) == ids[5:12]


async def test_large_payloads_shorten_the_walk_and_not_the_answer(store: Store) -> None:
    text = f'"{"x" * 100_000}"'
    ids = [new_job(payload=text, tenant="acme") for _ in range(40)]
    await store.jobs.enqueue(ids)
    found = await store.operator.select(JobFilter(tenant="acme"), 100, None)
    assert found == sorted(job.id for job in ids)


async def test_a_tag_is_matched_as_a_whole_however_it_is_written(store: Store) -> None:
    quoted = await put(store, Status.PENDING, tags=('a"x', "ü"))
    assert await pages(store, JobFilter(tag="x")) == [[]]
    assert await pages(store, JobFilter(tag='a"x')) == [[quoted]]
    assert await pages(store, JobFilter(tag="ü")) == [[quoted]]
