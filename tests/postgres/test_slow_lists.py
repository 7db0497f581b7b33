"""Tenants of a fair queue are listed less often where a list takes long: no slot is empty because of that."""

from typing import Any

import pytest

from tests.support.runners import new_runner, rule
from tests.support.seed import enqueue
from windlass.core.moments import SECOND
from windlass.store.contract import Store
from windlass.store.postgres.limits import fairness, throttle

TENANTS = fairness.MAX_LISTED + 40


@pytest.fixture
def _slow_lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each list takes a second, and nothing else takes any time."""
    now, listed = [1000 * SECOND], fairness._tenants

    async def slow(*about: Any) -> list[str]:
        now[0] += SECOND
        return await listed(*about)

    monkeypatch.setattr(fairness, "_tenants", slow)
    monkeypatch.setattr(throttle, "since_boot", lambda: now[0])


@pytest.mark.usefixtures("_slow_lists")
async def test_a_list_that_left_tenants_out_goes_on_when_those_listed_have_no_more_jobs(store: Store) -> None:
    await rule(store, fair=True)
    for number in range(TENANTS):
        await enqueue(store, 2, tenant=f"t{number:03}")
    runner = await new_runner(store)
    claimed = [len(await runner.claim(60)) for _ in range(2 * TENANTS // 60)]
    assert claimed == [60] * len(claimed)
