"""Groups and graphs with a name, on the caller's connection: what is stored under that name is compared."""

import asyncio
from typing import Any

import psycopg
import pytest

from windlass import App, InvalidOption, group

ORDER = "INSERT INTO orders VALUES (1)"


@pytest.fixture
async def taken(watcher: App) -> None:
    """Both names belong to something of one job."""

    @watcher.task
    def one(number: int) -> None: ...

    await group([one.job(1)], id="import-7").aenqueue()
    async with watcher.flow("order") as flow:
        flow.add(one.job(1))


@pytest.mark.usefixtures("taken")
async def test_the_name_of_a_group_or_graph_that_is_taken_is_compared(app: App, work: Any, url: str) -> None:
    async with await psycopg.AsyncConnection.connect(url) as connection:
        await connection.execute(ORDER)
        with pytest.raises(InvalidOption, match="with 1 members, not 2"):
            await group([work.job(1), work.job(2)], id="import-7").aenqueue(connection=connection)
        other = app.flow("order", connection=connection)
        other.add(work.job(1))
        other.add(work.job(2))
        with pytest.raises(InvalidOption, match="with other nodes"):
            await other.aenqueue()
        assert (await group([work.job(1)], id="import-7").aenqueue(connection=connection)).existing


@pytest.mark.usefixtures("taken")
async def test_the_name_is_compared_for_a_caller_that_blocks(app: App, work: Any, url: str) -> None:
    def enqueue() -> bool:
        with psycopg.connect(url) as connection:
            connection.execute(ORDER)
            with pytest.raises(InvalidOption, match="with 1 members, not 2"):
                group([work.job(1), work.job(2)], id="import-7").enqueue(connection=connection)
            other = app.flow("order", connection=connection)
            other.add(work.job(1))
            other.add(work.job(2))
            with pytest.raises(InvalidOption, match="with other nodes"):
                other.enqueue()
            return group([work.job(1)], id="import-7").enqueue(connection=connection).existing

    assert await asyncio.to_thread(enqueue)
