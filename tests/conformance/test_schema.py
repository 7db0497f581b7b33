"""A newer Windlass has taken a step: beside an additive one this version goes on, at a breaking one it stops."""

from pathlib import Path

import pytest

from tests.support.clock import ManualClock
from tests.support.every_verb import every_verb
from tests.support.seed import enqueue_one, look
from tests.support.steps import take_step
from tests.support.stores import LASTING, STORES
from windlass.errors import SchemaMismatch
from windlass.store.contract import Store


async def test_a_running_process_goes_on_beside_an_additive_step(store: Store) -> None:
    id_ = await enqueue_one(store)
    await take_step(store, breaking=False)
    await store.check_schema()
    await every_verb(store)
    assert (await look(store, id_)).id == id_


@pytest.mark.parametrize("name", LASTING)
async def test_a_process_that_starts_works_beside_an_additive_step(
    name: str, tmp_path: Path, clock: ManualClock
) -> None:
    first, second = STORES[name].open(tmp_path, clock), STORES[name].open(tmp_path, clock)
    id_ = await enqueue_one(first)
    await take_step(first, breaking=False)
    assert await second.migrate() == []
    await second.check_schema()
    await every_verb(second)
    assert (await look(second, id_)).id == id_
    await first.close()
    await second.close()


async def test_a_running_process_notices_a_breaking_step(store: Store) -> None:
    await store.check_schema()
    await take_step(store, breaking=True)
    with pytest.raises(SchemaMismatch, match="upgrade"):
        await store.check_schema()


@pytest.mark.parametrize("name", LASTING)
async def test_a_process_that_starts_refuses_a_breaking_step(name: str, tmp_path: Path, clock: ManualClock) -> None:
    first, second = STORES[name].open(tmp_path, clock), STORES[name].open(tmp_path, clock)
    await take_step(first, breaking=True)
    for call in (second.migrate, second.operator.counts, second.check_schema):
        with pytest.raises(SchemaMismatch, match="upgrade"):
            await call()
    await first.close()
    await second.close()
