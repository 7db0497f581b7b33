"""The document of an open group: made for a new group, and kept whatever another producer does at that moment."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.conformance.test_groups import enqueue_group
from windlass.client.groups.opening import begin_group, open_group, read_opening, seal_group
from windlass.core.groups.ids import named_group_id
from windlass.store.contract import Store

GROUP = named_group_id("import-7")


class Between:
    """A store, before one of whose calls something else happens."""

    def __init__(self, part: Any, calls: list[int], happens: Callable[[], Awaitable[None]]) -> None:
        """`calls` has how many calls come before it."""
        self._part, self._calls, self._happens = part, calls, happens

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._part, name)
        return self._called(found) if callable(found) else Between(found, self._calls, self._happens)

    def _called(self, verb: Any) -> Any:
        async def call(*args: Any) -> Any:
            self._calls[0] -= 1
            if self._calls[0] == 0:
                await self._happens()
            return await verb(*args)

        return call


@pytest.mark.parametrize("moment", range(1, 7))
@pytest.mark.parametrize("earlier", [False, True])
async def test_of_two_producers_that_begin_a_group_at_once_none_undoes_the_seal_of_the_other(
    store: Store, moment: int, earlier: bool
) -> None:
    if earlier:
        await open_group(store, GROUP)
        await seal_group(store, GROUP, 7)

    async def other() -> None:
        await begin_group(store, GROUP)
        await enqueue_group(store, 1, GROUP)
        await seal_group(store, GROUP, 1)

    calls = [moment]
    between: Any = Between(store, calls, other)
    await begin_group(between, GROUP)
    if calls[0] > 0:
        await other()
    found = await read_opening(store, GROUP)
    assert found is not None
    assert found.size == 1


async def test_a_new_group_is_not_sealed_by_the_document_of_an_earlier_one_with_its_name(store: Store) -> None:
    await open_group(store, GROUP)
    await seal_group(store, GROUP, 7)
    assert await begin_group(store, GROUP) is None
    found = await read_opening(store, GROUP)
    assert found is not None
    assert found.size is None


async def test_a_producer_that_goes_on_finds_its_group_and_the_seal(store: Store) -> None:
    await begin_group(store, GROUP)
    await enqueue_group(store, 1, GROUP)
    await seal_group(store, GROUP, 1)
    known = await begin_group(store, GROUP)
    assert known is not None
    assert known.id == GROUP
    found = await read_opening(store, GROUP)
    assert found is not None
    assert found.size == 1
