"""Flow: what limits, keys and tenants cost a drain, and what those who wait in line cost others."""

import asyncio
import contextlib
import statistics
from collections.abc import Callable, Iterator

import msgspec

from windlass.bench import labour
from windlass.bench.contest import BenchFailed
from windlass.bench.figures import Base, Row, Section, Target, bars
from windlass.bench.goals import at_most
from windlass.bench.ground import Ground
from windlass.bench.growth import Claims
from windlass.bench.labour import Labour
from windlass.bench.line import Line, LineUp
from windlass.core.job import DEFAULT_QUEUE, NewJob
from windlass.core.queue import QueueSettings
from windlass.core.rate import parse_rate
from windlass.store.open import open_store

UNIT = "jobs/s"
TENANTS = 100
FAR = QueueSettings(max_concurrency=100_000, rate_limit=parse_rate("1000000/s", "rate_limit"))
FAIR = QueueSettings(fair=True)
WITHIN = 0.8
"""Under a held snapshot the shares may be a fifth less."""
UNRELATED = at_most(1.2)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A drain: what its queue was told, and what its jobs are like."""

    name: str
    settings: QueueSettings | None = None
    dress: Callable[[NewJob, int], NewJob] = lambda job, number: job
    share: float = 1.0
    """Of the plain drain, to be reached."""


def measure(ground: Ground) -> Section:
    """Every case in turn, round by round; then claims beside a long line."""
    plain, *ruled = cases(ground.scale.flow_keys)
    holding = [False, True] if ground.yardstick.goals.held else [False]
    rates: dict[tuple[str, bool], list[float]] = {}
    for _ in ground.rounds("flow"):
        for held in holding:
            for case in (plain, *ruled):
                ground.say(f"flow: {_name(case, held=held)}")
                rates.setdefault((case.name, held), []).append(_drain(ground, case, held=held))
    rows = [_row(case, plain, rates, held=held) for held in holding for case in (plain, *ruled)]
    return _section(ground, rows, asyncio.run(_beside(ground)))


def cases(keys: int) -> list[Case]:
    """The plain one first."""
    return [
        Case(name="plain"),
        Case(name="limits far from binding", settings=FAR, share=0.80),
        Case(
            name=f"{keys:,} concurrency keys",
            dress=lambda job, number: msgspec.structs.replace(job, concurrency_key=f"key {number % keys}"),
            share=0.40,
        ),
        Case(
            name=f"fair, {TENANTS} tenants",
            settings=FAIR,
            dress=lambda job, number: msgspec.structs.replace(job, tenant=f"tenant {number % TENANTS}"),
            share=0.60,
        ),
    ]


def _drain(ground: Ground, case: Case, *, held: bool) -> float:
    jobs = ground.scale.drain
    with ground.store() as address:
        asyncio.run(_fill(address, case, jobs))
        with _holding(ground, address, held=held):
            Labour(address, ground.folder).drain()
        span = ground.yardstick.span(address)
    if span.jobs != jobs:
        raise BenchFailed(f"{case.name}: {jobs} jobs were handed in, {span.jobs} were completed")
    return span.rate


async def _fill(address: str, case: Case, jobs: int) -> None:
    store = open_store(address)
    try:
        if case.settings is not None:
            await store.queues.change(DEFAULT_QUEUE, case.settings)
        for start in range(0, jobs, LineUp.CHUNK):
            made = labour.make(min(LineUp.CHUNK, jobs - start))
            await store.jobs.enqueue([case.dress(job, start + n) for n, job in enumerate(made)])
    finally:
        await store.close()


@contextlib.contextmanager
def _holding(ground: Ground, address: str, *, held: bool) -> Iterator[None]:
    with ground.yardstick.hold_snapshot(address) if held else contextlib.nullcontext():
        yield


async def _beside(ground: Ground) -> list[Row]:
    """The claim of unrelated jobs without a line in their queue and with one, claim by claim in turn."""
    scale = ground.scale
    line = Line(scale.blocked, scale.blocked_keys)
    alone, beside = list[float](), list[float]()
    async with contextlib.AsyncExitStack() as stack:
        ready: list[tuple[list[float], Claims]] = []
        for figures, behind in ((alone, None), (beside, line)):
            ground.say(f"flow: filling a store{f' with {behind.name}' if behind else ''}")
            address = stack.enter_context(ground.store())
            store = open_store(address)
            stack.push_async_callback(store.close)
            ready.append((figures, await LineUp(store).ready(scale.waiting[0], behind)))
        for _ in ground.rounds("flow, claims beside a line"):
            taken = [[await claims.once() for _, claims in ready] for _ in range(scale.claims)]
            for (figures, _), column in zip(ready, zip(*taken, strict=True), strict=True):
                figures.append(statistics.median(once.claim for once in column))
    base = Base("claim, nobody in line", alone)
    return [Row(name=f"claim, {line.name}", unit="ms", rounds=beside, base=base, target=UNRELATED)]


def _row(case: Case, plain: Case, rates: dict[tuple[str, bool], list[float]], *, held: bool) -> Row:
    rounds = rates[case.name, held]
    if case is plain:
        return Row(name=_name(case, held=held), unit=UNIT, rounds=rounds)
    target = Target(round(case.share * (WITHIN if held else 1.0), 2))
    base = Base(_name(plain, held=held), rates[plain.name, held])
    return Row(name=_name(case, held=held), unit=UNIT, rounds=rounds, base=base, target=target)


def _name(case: Case, *, held: bool) -> str:
    return f"{case.name}, held" if held else case.name


def _section(ground: Ground, drains: list[Row], claims: list[Row]) -> Section:
    return Section(
        name="flow",
        title=f"Flow control: {ground.scale.drain:,} no-op jobs",
        rows=[*drains, *claims],
        charts=[bars("Drain", drains), bars("A claim of unrelated jobs", claims)],
        notes=[
            "Drains by `windlass worker --until-empty` with default settings and one runner, from the first claim to "
            "the last completion, as the store recorded them; compared with the same jobs in a queue without rules.",
            f"Far limits: max_concurrency {FAR.max_concurrency:,} and rate_limit {FAR.rate_limit}.",
            "Held: another connection holds a snapshot open all the while.",
            "The claim: 100 jobs without a key, in a queue in which the others wait in line for keys that are held.",
        ],
    )
