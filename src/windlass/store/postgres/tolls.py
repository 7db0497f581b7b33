"""Tolls: jobs that are next pay for their start at the gates of their queue and of their keys (core/toll.py).

The gates are locked until the jobs are taken, and what is left in them is written with the moment of the taking: a
process that was stopped in between starts its jobs late, but not twice as many. Where the rate of the queue is far
from being reached, a runner is granted tokens ahead, good for a quarter of a second; its next claims need no gate.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from windlass.core.moments import SECOND, Micros
from windlass.core.rate import Bucket, Rate, full, parse_rate, price, refilled, spent, wait_for
from windlass.core.toll import Aside, Fare, Purses, charge
from windlass.store.postgres.cursors import Candidate
from windlass.store.postgres.db import Db

OWN = ""
"""The key of a queue's own gate."""
AHEAD: Micros = SECOND // 4
"""So long tokens that were granted ahead are good."""
FAR = 10
"""A limit is far if it leaves room for so many claims like this one."""
SOON: Micros = SECOND // 50
"""When to ask again where somebody else is at the gate."""


class Grant(msgspec.Struct, frozen=True):
    """Tokens of a queue that a runner may spend until a moment, by the server's clock."""

    tokens: int
    until: Micros


class Payer(msgspec.Struct, frozen=True):
    """Who pays: a runner's claim from a queue."""

    queue: str
    runner: str
    rate: Rate | None
    """Of the queue."""
    grant: Grant | None = None
    claim: int = 0
    """How many jobs it asks for."""
    now: Micros = 0
    """A moment ago, by the server's clock."""


class Toll(msgspec.Struct):
    """What came of it."""

    paid: Sequence[Candidate] = ()
    aside: Mapping[str, Micros] = {}
    """How long from now, by id."""
    gates: Mapping[str, tuple[Bucket, Rate]] = {}
    grant: Grant | None = None
    """What may be spent by the next claims."""
    until: Micros | None = None
    """By the clock of the server, these tokens must be spent."""
    wait: Micros | None = None
    """How long until the queue can pay for the next, from `now` on."""
    now: Micros = 0

    def values(self) -> dict[str, Any]:
        """For the statement that takes the jobs."""
        gates = self.gates.values()
        return {
            "places": [job.place for job in self.paid],
            "off": list(self.aside),
            "delays": list(self.aside.values()),
            "keys": list(self.gates),
            "credits": [bucket.credit for bucket, _ in gates],
            "periods": [bucket.period for bucket, _ in gates],
            "fillings": [wait_for(bucket, rate, rate.burst) for bucket, rate in gates],
            "until": self.until,
        }


@lru_cache(maxsize=1000)
def rate_of(text: str | None) -> Rate | None:
    """A rate as it is kept."""
    return None if text is None else parse_rate(text, "rate")


async def reach(db: Db, queue: str, rate: Rate) -> bool:
    """Be the one at the gate of a queue, if nobody else is: before jobs are found, or one who finds the next ones
    meanwhile might pass with them, and the first would come last."""
    _, gates = await _lock(db, queue, {OWN: rate})
    return OWN in gates


async def toll(db: Db, payer: Payer, jobs: Sequence[Candidate]) -> Toll:
    """Which of the jobs may start, and what is left at the gates."""
    rates = {job.key: rate for job in jobs if job.key is not None and (rate := rate_of(job.key_rate))}
    own = payer.rate if payer.grant is None else None
    if own is not None:
        rates[OWN] = own
    now, gates = await _lock(db, payer.queue, rates) if rates else (payer.now, {})
    if own is not None and OWN not in gates:
        return Toll(wait=SOON, now=now)
    free = [job for job in jobs if job.key_rate is None or job.key in gates]
    granted = payer.grant
    if granted is not None and payer.rate is not None:
        # As a bucket it brings nothing more.
        gates[OWN] = Bucket(granted.tokens * payer.rate.period, payer.rate.period, now)
    purse = gates.pop(OWN, None)
    keyed = any(key != OWN for key in rates)
    if not keyed and (left := _for_all(jobs, payer.rate, purse, now)) is not None:
        result = Toll(paid=jobs, now=now)
        await _pay(db, payer, result, left, now)
        return result
    aside = await _aside(db, payer.queue, [key for key in rates if key != OWN])
    verdict = charge([_fare(job) for job in free], Purses(payer.rate, purse, gates, aside), now)
    paid = set(verdict.paid)
    result = Toll(
        paid=[job for job in free if job.id in paid],
        aside={id_: until - now for id_, until in verdict.aside.items()},
        gates=dict(verdict.keys),
        wait=None if verdict.until is None else verdict.until - now,
        now=now,
    )
    if payer.rate is not None and verdict.own is not None:
        await _pay(db, payer, result, verdict.own, now)
    return result


def _for_all(jobs: Sequence[Candidate], rate: Rate | None, purse: Bucket | None, now: Micros) -> Bucket | None:
    """What is left in the queue's purse after all of them have paid, if there is enough: the usual case in short."""
    if rate is None or purse is None:
        return None
    left, due = refilled(purse, rate, now), sum(price(job.cost, rate) for job in jobs)
    return spent(left, due) if left.tokens >= due else None


def _fare(job: Candidate) -> Fare:
    rate = None if job.key is None else rate_of(job.key_rate)
    return Fare((job.urgency, job.rank, job.id), job.cost, job.key or "", rate)


async def _pay(db: Db, payer: Payer, result: Toll, left: Bucket, now: Micros) -> None:
    """From what was granted before, or at the gate; and if there is plenty, for the next claims too."""
    rate, granted = payer.rate, payer.grant
    if rate is None:
        return
    if granted is not None:
        result.until = granted.until
        result.grant = Grant(left.tokens, granted.until) if left.tokens else None
        return
    tokens = min(left.tokens // 4, rate.tokens * AHEAD // rate.period)
    if tokens >= payer.claim > 0 and _is_far(_granted(left, rate, tokens, 0), payer):
        ((others,),) = await db.rows("granted", {"queue": payer.queue, "runner": payer.runner})
        after = _granted(left, rate, tokens, others)
        # With a small burst, what must be held back for a grant would be more than others can do without.
        if _is_far(after, payer):
            left = after
            result.grant = Grant(tokens, now + AHEAD)
            values = {"queue": payer.queue, "runner": payer.runner, "tokens": tokens, "until": now + AHEAD}
            await db.run("grant", values)
    result.gates = {OWN: (left, rate), **result.gates}


def _is_far(bucket: Bucket, payer: Payer) -> bool:
    return bucket.tokens >= FAR * payer.claim


def _granted(bucket: Bucket, rate: Rate, tokens: int, others: int) -> Bucket:
    """After tokens were granted. They may be spent at the end of their time, together with all that is there then.

    So there must be room for them until that time, for what others were granted, and for what it brings.
    """
    room = (rate.burst - others - tokens) * rate.period - rate.tokens * AHEAD
    return Bucket(min(spent(bucket, tokens).credit, room), bucket.period, bucket.at)


async def _lock(db: Db, queue: str, rates: Mapping[str, Rate]) -> tuple[Micros, dict[str, Bucket]]:
    """The gates of these keys, locked; those that somebody else is at are missing."""
    keys = sorted(rates)
    rows = await db.rows("lock_gates", {"queue": queue, "keys": keys})
    if missing := sorted(set(keys).difference(row[0] for row in rows)):
        new = [full(rates[key], 0) for key in missing]
        credits_, periods = [each.credit for each in new], [each.period for each in new]
        values = {"queue": queue, "keys": missing, "credits": credits_, "periods": periods}
        if await db.run("make_gates", values):
            rows = await db.rows("lock_gates", {"queue": queue, "keys": keys})
    now = rows[0][4] if rows else await db.now()
    return now, {key: Bucket(credit, period, at) for key, credit, period, at, _ in rows}


async def _aside(db: Db, queue: str, keys: Sequence[str]) -> dict[str, list[Aside]]:
    aside: dict[str, list[Aside]] = defaultdict(list)
    if keys:
        for key, *place, until, cost in await db.rows("stepped_aside", {"queue": queue, "keys": list(keys)}):
            aside[key].append(Aside(tuple(place), until, cost))
    return aside
