"""Flow: the cost of limits, keys and tenants in a drain, and the cost of waiting jobs for others."""

import asyncio
import contextlib
import statistics
from collections.abc import Callable

import msgspec

from bench.context import BenchContext
from bench.measures.growth import Claims
from bench.measures.key_queue import KeyQueue, StoreFiller
from bench.report.figures import Base, Row, Section, Target, bars
from bench.targets import at_most
from bench.worker import Worker, make_jobs
from windlass.bench.process import BenchFailed
from windlass.core.flow.queue import QueueSettings
from windlass.core.flow.rate import parse_rate
from windlass.core.jobs.job import DEFAULT_QUEUE, NewJob
from windlass.store.open import open_store

UNIT = "jobs/s"
TENANTS = 100
FAR = QueueSettings(max_concurrency=100_000, rate_limit=parse_rate("1000000/s", "rate_limit"))
FAIR = QueueSettings(fair=True)
WITHIN = 0.8
"""Under a held snapshot the shares may be a fifth less."""
UNRELATED = at_most(1.2)


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """A drain: the settings of its queue, and how its jobs vary."""

    name: str
    settings: QueueSettings | None = None
    vary: Callable[[NewJob, int], NewJob] = lambda job, number: job
    share: float = 1.0
    """The target, as a share of the plain drain."""


def measure(context: BenchContext) -> Section:
    """Every case in turn, round by round; then claims beside jobs that wait for keys."""
    plain, *limited = cases(context.scale.flow_keys)
    holding = [False, True] if context.store_bench.targets.held else [False]
    rates: dict[tuple[str, bool], list[float]] = {}
    for _ in context.rounds("flow"):
        for held in holding:
            for case in (plain, *limited):
                context.progress(f"flow: {_name(case, held=held)}")
                rates.setdefault((case.name, held), []).append(_drain(context, case, held=held))
    rows = [_row(case, plain, rates, held=held) for held in holding for case in (plain, *limited)]
    return _section(context, rows, asyncio.run(_beside(context)))


def cases(keys: int) -> list[Case]:
    """The plain one first."""
    return [
        Case(name="plain"),
        Case(name="limits far from binding", settings=FAR, share=0.90),
        Case(
            name=f"{keys:,} concurrency keys",
            vary=lambda job, number: msgspec.structs.replace(job, concurrency_key=f"key {number % keys}"),
            share=0.55,
        ),
        Case(
            name=f"fair, {TENANTS} tenants",
            settings=FAIR,
            vary=lambda job, number: msgspec.structs.replace(job, tenant=f"tenant {number % TENANTS}"),
            share=0.75,
        ),
    ]


def _drain(context: BenchContext, case: Case, *, held: bool) -> float:
    jobs = context.scale.drain
    with context.store() as address:
        asyncio.run(_fill(address, case, jobs))
        with context.holding_snapshot(address, held=held):
            Worker(address, context.folder).drain()
        span = context.store_bench.span(address)
    if span.jobs != jobs:
        raise BenchFailed(f"{case.name}: {jobs} jobs were enqueued, {span.jobs} were completed")
    return span.rate


async def _fill(address: str, case: Case, jobs: int) -> None:
    store = open_store(address)
    try:
        if case.settings is not None:
            await store.queues.change(DEFAULT_QUEUE, case.settings)
        for start in range(0, jobs, StoreFiller.CHUNK):
            made = make_jobs(min(StoreFiller.CHUNK, jobs - start))
            await store.jobs.enqueue([case.vary(job, start + n) for n, job in enumerate(made)])
    finally:
        await store.close()


async def _beside(context: BenchContext) -> list[Row]:
    """The claim of unrelated jobs without jobs that wait for keys and with many, claim by claim in turn."""
    scale = context.scale
    key_queue = KeyQueue(scale.blocked, scale.blocked_keys)
    alone, beside = list[float](), list[float]()
    async with contextlib.AsyncExitStack() as stack:
        ready: list[tuple[list[float], Claims]] = []
        for figures, behind in ((alone, None), (beside, key_queue)):
            context.progress(f"flow: filling a store{f' with {behind.name}' if behind else ''}")
            address = stack.enter_context(context.store())
            store = open_store(address)
            stack.push_async_callback(store.close)
            ready.append((figures, await StoreFiller(store).ready(scale.waiting[0], behind)))
        for _ in context.rounds("flow, claims beside jobs that wait for keys"):
            taken = [[await claims.once() for _, claims in ready] for _ in range(scale.claims)]
            for (figures, _), column in zip(ready, zip(*taken, strict=True), strict=True):
                figures.append(statistics.median(once.claim for once in column))
    base = Base("claim, no job waits for a key", alone)
    return [Row(name=f"claim, {key_queue.name}", unit="ms", rounds=beside, base=base, target=UNRELATED)]


def _row(case: Case, plain: Case, rates: dict[tuple[str, bool], list[float]], *, held: bool) -> Row:
    rounds = rates[case.name, held]
    if case is plain:
        return Row(name=_name(case, held=held), unit=UNIT, rounds=rounds)
    target = Target(round(case.share * (WITHIN if held else 1.0), 2))
    base = Base(_name(plain, held=held), rates[plain.name, held])
    return Row(name=_name(case, held=held), unit=UNIT, rounds=rounds, base=base, target=target)


def _name(case: Case, *, held: bool) -> str:
    return f"{case.name}, held" if held else case.name


def _section(context: BenchContext, drains: list[Row], claims: list[Row]) -> Section:
    return Section(
        name="flow",
        title=f"Flow control: {context.scale.drain:,} no-op jobs",
        rows=[*drains, *claims],
        charts=[bars("Drain", drains), bars("A claim of unrelated jobs", claims)],
        notes=[
            "Drains by `windlass worker --until-empty` with default settings and one runner, from the first claim to "
            "the last completion, as the store recorded them; compared with the same jobs in a queue without limits.",
            f"Far limits: max_concurrency {FAR.max_concurrency:,} and rate_limit {FAR.rate_limit}.",
            "Held: another connection holds a snapshot open throughout.",
            "The claim: 100 jobs without a key, in a queue in which the others wait for keys that are held.",
        ],
    )
