"""The order of rows in the file: jobs that run at the same time are stored side by side."""

from tests.sqlite.conftest import Connect, Open
from tests.support.seed import new_job
from windlass.core.jobs.job import NewJob

CHAINS, LINKS = 20, 5


def chain() -> list[NewJob]:
    """Each job waits for the one before it."""
    jobs = [new_job()]
    for _ in range(LINKS - 1):
        jobs.append(new_job(parents=(jobs[-1].id,)))
    return jobs


async def test_the_links_of_many_chains_are_stored_level_by_level(opens: Open, connects: Connect) -> None:
    store, chains = opens(), [chain() for _ in range(CHAINS)]
    await store.jobs.enqueue([job for jobs in chains for job in jobs])
    level = {job.id: place for jobs in chains for place, job in enumerate(jobs)}
    file = connects()
    rows = [level[id_] for (id_,) in file.rows("SELECT id FROM windlass_jobs ORDER BY rowid")]
    file.close()
    assert rows == sorted(rows)
    assert len(rows) == CHAINS * LINKS
