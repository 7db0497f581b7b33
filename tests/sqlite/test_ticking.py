"""A clock that goes on while a claim is at work: what starts is paid for at the moment that is written down."""

from pathlib import Path
from random import Random

from tests.support.clock import ManualClock
from tests.support.runners import new_runner, rule, within_rate
from tests.support.seed import enqueue
from tests.support.stores import STORES
from windlass.core.flow.rate import parse_rate
from windlass.core.moments import Micros


class Ticking(ManualClock):
    """Between two looks at it some time passes, now more, now less."""

    def __init__(self) -> None:
        super().__init__()
        self._random = Random(6)

    def wall(self) -> Micros:
        self.advance(self._random.choice([1, 1, 5_000]))
        return super().wall()


async def test_a_rate_holds_by_the_moments_that_are_written_down(tmp_path: Path) -> None:
    store = STORES["sqlite"].open(tmp_path, Ticking())
    rate = parse_rate("10/s burst 2", "rate")
    await rule(store, rate_limit=rate)
    await enqueue(store, 40)
    runner = await new_runner(store)
    starts = [(job.claimed_at, 1) for _ in range(300) for job in await runner.claim()]
    await store.close()
    assert within_rate(starts, rate)
    assert len(starts) > 5, "it must not be kept by giving nothing"
