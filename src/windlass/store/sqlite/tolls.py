"""Tolls: jobs that are next pay for their start from the buckets of their queue and of their keys."""

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

from windlass.core.moments import Micros
from windlass.core.rate import Bucket, Rate, full, ready_at, refilled
from windlass.core.toll import Aside, Fare, Purses, Verdict, charge
from windlass.store.sqlite.db import Db, array
from windlass.store.sqlite.terms import rate_of

OWN = ""
"""The key of a queue's own bucket."""


def to_fare(row: Sequence[Any]) -> Fare:
    """A row of urgency, rank, id, cost, key and the rate of the key."""
    urgency, rank, id_, cost, key, rate = row
    return Fare((urgency, rank, id_), cost, key, rate_of(rate))


def toll(db: Db, queue: str, rate: Rate | None, fares: Sequence[Fare], now: Micros) -> Verdict:
    """Who may start: what they pay is gone from the buckets, who must wait has stepped aside.

    `now` is the moment that is written down as that of their start: the tokens of a later one are not theirs.
    """
    keys = sorted({fare.key for fare in fares if fare.rate is not None})
    wanted = keys if rate is None else [OWN, *keys]
    buckets = _buckets(db, queue, wanted) if wanted else {}
    aside: dict[str, list[Aside]] = defaultdict(list)
    if keys:
        for key, *place, until, cost in db.rows("stepped_aside", {"queue": queue, "keys": array(keys)}):
            aside[key].append(Aside(tuple(place), until, cost))
    verdict = charge(fares, Purses(rate, buckets.pop(OWN, None), buckets, aside), now)
    spent = list(verdict.keys.items())
    if rate is not None and verdict.own is not None:
        spent.append((OWN, (verdict.own, rate)))
    if spent:
        db.run_many("set_gate", [_row(queue, key, *each) for key, each in spent])
    if verdict.aside:
        db.run_many("step_aside", [{"id": id_, "until": until, "now": now} for id_, until in verdict.aside.items()])
    return verdict


def tokens(db: Db, queue: str, rate: Rate) -> Bucket:
    """What the queue has to spend now."""
    now = db.now
    return refilled(_buckets(db, queue, [OWN]).get(OWN) or full(rate, now), rate, now)


def _buckets(db: Db, queue: str, keys: Sequence[str]) -> dict[str, Bucket]:
    rows = db.rows("gates", {"queue": queue, "keys": array(keys)})
    return {key: Bucket(credit, period, at) for key, credit, period, at in rows}


def _row(queue: str, key: str, bucket: Bucket, rate: Rate) -> tuple[str, str, int, int, Micros, Micros]:
    return queue, key, bucket.credit, bucket.period, bucket.at, ready_at(bucket, rate, rate.burst)
