"""How much a connection asks the kernel for at a time."""

import pytest

from tests.support.loops import LOOPS, run_on
from windlass.store.postgres.connection.connect import READ_SIZE, connect

LONG = 1_000_000


@pytest.mark.parametrize("loop", LOOPS)
def test_a_long_reply_comes_whole_by_small_reads(url: str, loop: str) -> None:
    """Large reads leave gaps in the heap of a long-lived process; uvloop reads into a buffer of its own."""

    async def read() -> tuple[int, int | None]:
        session = await connect(url, 30, pooled=False)
        try:
            text = await session.connection.fetchval(f"SELECT repeat('x', {LONG})")
            return len(text), getattr(session.connection._transport, "max_size", None)
        finally:
            await session.close()

    assert run_on(loop, read()) == (LONG, READ_SIZE if loop == "asyncio" else None)
