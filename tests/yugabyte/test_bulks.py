"""How long a bulk may be open, against what the profile looks back by."""

from pathlib import Path

from tests.support.stores import yugabyte_url
from windlass.client.app import CLIENT_DEADLINE
from windlass.core.moments import SECOND
from windlass.store.open import open_store
from windlass.store.postgres.connection.access import Access
from windlass.store.postgres.connection.profile import LOOKBACK, SKEW
from windlass.store.postgres.store import PostgresStore

FOUND_LATE = 40_000
"""What docs/not-promised.md says."""


async def test_smaller_bulks_than_stated_end_before_their_jobs_could_be_found_late(tmp_path: Path) -> None:
    store = open_store(yugabyte_url(tmp_path))
    assert isinstance(store, PostgresStore)
    access = Access(store._server, CLIENT_DEADLINE)
    longest = [access.for_many(jobs).seconds * SECOND for jobs in (FOUND_LATE - 1, FOUND_LATE)]
    assert longest[0] <= LOOKBACK - SKEW < longest[1]
    await store.close()
