"""Plants, cleared whatever happens in them."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.postgres.works.plant import Plant
from tests.support.servers.pgbouncer import PgBouncer
from tests.support.stores import postgres_url as migrated_url


@pytest.fixture
def plant(tmp_path: Path) -> Iterator[Plant]:
    """Workers that reach the server directly."""
    made = Plant(tmp_path, migrated_url(tmp_path))
    yield made
    made.close()


@pytest.fixture
def pooled(tmp_path: Path, postgres_pgbouncer: PgBouncer) -> Iterator[Plant]:
    """Workers behind PgBouncer in transaction mode."""
    direct = migrated_url(tmp_path)
    made = Plant(tmp_path, direct, postgres_pgbouncer.address.dsn(direct.rpartition("/")[2]))
    yield made
    made.close()
