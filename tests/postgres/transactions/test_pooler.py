"""A caller behind PgBouncer in transaction mode, with an app that is behind it too or not."""

from typing import Any
from urllib.parse import urlsplit

import asyncpg
import psycopg
import pytest

from tests.support.servers.pgbouncer import PgBouncer
from windlass import App


@pytest.mark.parametrize("both", [False, True])
async def test_the_pooler_is_seen_through(postgres_pgbouncer: PgBouncer, url: str, both: bool) -> None:
    pooled = postgres_pgbouncer.address.dsn(urlsplit(url).path[1:])
    app = App(pooled if both else url)

    @app.task
    def work(number: int) -> None: ...

    with psycopg.connect(pooled, prepare_threshold=None) as theirs:
        await work.using(connection=theirs).aenqueue(1)
        theirs.commit()
        await work.using(connection=theirs).aenqueue(2)
        theirs.rollback()
    other: Any = await asyncpg.connect(pooled, statement_cache_size=0)
    async with other.transaction():
        await work.using(connection=other, idempotency_key="k").aenqueue(3)
    await other.close()
    assert (await app.stats.acounts()).totals["pending"] == 2
    await app.aclose()
