"""Buckets and tolls are reckoned in a script just as in core, to the last unit."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.redis.lua import run
from windlass.core.moments import DAY, SECOND, Micros
from windlass.core.rate import MOST_TOKENS, Bucket, Rate, ready_at, refilled
from windlass.core.toll import Aside, Fare, Place, Purses, Verdict, charge

EXACT = 2**53
"""Numbers in a script are exact up to here: the year 2255."""
NOW: Micros = 1_800_000_000 * SECOND

periods = st.one_of(
    st.sampled_from([SECOND, 60 * SECOND, 3600 * SECOND, DAY]), st.integers(1, 86_400).map(SECOND.__mul__)
)
tokens = st.one_of(
    st.sampled_from([1, 2, 3, 7, 10, 1000, 1023, 1024, 1025, MOST_TOKENS]), st.integers(1, MOST_TOKENS)
)
rates = st.builds(Rate, tokens, periods, tokens)
passed = st.one_of(st.integers(-20 * SECOND, 20 * SECOND), st.integers(0, 40 * 365 * DAY), st.integers(0, 5))


@st.composite
def buckets(draw: st.DrawFn, rate: Rate) -> Bucket:
    """What a bucket of this rate, or of another, may have been."""
    other = draw(st.one_of(st.just(rate), rates))
    credit = draw(st.integers(0, other.burst * other.period))
    return Bucket(credit, other.period, NOW - draw(passed))


@st.composite
def refills(draw: st.DrawFn) -> tuple[Rate, Bucket, int]:
    """A bucket, its rate and how many tokens somebody wants."""
    rate = draw(rates)
    return rate, draw(buckets(rate)), draw(tokens)


def split(bucket: Bucket | None) -> dict[str, int] | None:
    """As scripts have it."""
    if bucket is None:
        return None
    whole, part = divmod(bucket.credit, bucket.period)
    return {"whole": whole, "part": part, "period": bucket.period, "at": bucket.at}


def joined(found: dict[str, Any]) -> Bucket:
    """As core has it."""
    return Bucket(
        int(found["whole"]) * int(found["period"]) + int(found["part"]), int(found["period"]), int(found["at"])
    )


def table(rate: Rate | None) -> dict[str, int] | None:
    """As scripts have it."""
    return None if rate is None else {"tokens": rate.tokens, "period": rate.period, "burst": rate.burst}


def same_moment(found: float, meant: Micros) -> bool:
    """To the microsecond; only beyond the year 2255 it is as near as numbers there are."""
    return found == meant if meant < EXACT else abs(found - meant) <= meant / EXACT * 4


@given(refills())
def test_a_bucket_is_refilled_as_in_core(case: tuple[Rate, Bucket, int]) -> None:
    rate, bucket, wanted = case
    found, moment = run(
        """
        -- uses: bucket
        local full = refilled(given[2], given[1], given[3])
        return cmsgpack.pack({full, ready_at(full, given[1], given[4])})
        """.replace("        ", ""),
        table(rate),
        split(bucket),
        NOW,
        wanted,
    )
    meant = refilled(bucket, rate, NOW)
    assert joined(found) == meant
    assert same_moment(moment, ready_at(meant, rate, wanted))


KEYS = ("k" * 32, "l" * 32)


def place(text: Place) -> str:
    """A place that sorts as it does in core."""
    urgency, rank, id_ = text
    return f"{urgency + 32768:05}{rank:020}{id_}"


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[Fare], Purses]:
    """Jobs in a line, and what there is to be spent."""
    own = draw(st.one_of(st.none(), rates, st.builds(Rate, st.integers(1, 5), periods, st.integers(1, 9))))
    keyed = st.builds(Rate, st.integers(1, 5), st.just(SECOND), st.integers(1, 9))
    of_keys = {key: draw(st.one_of(keyed, rates)) for key in KEYS}
    places = draw(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 9)), min_size=1, max_size=12))
    fares, aside = [], {key: [] for key in KEYS}  # type: tuple[list[Fare], dict[str, list[Aside]]]
    for number, (urgency, rank) in enumerate(places):
        at, cost, key = (urgency, rank, f"{number:036}"), draw(st.integers(1, 12)), draw(st.sampled_from(KEYS))
        if draw(st.integers(0, 2)) == 0:
            aside[key].append(Aside(at, NOW + draw(st.integers(-SECOND, 5 * SECOND)), cost))
        elif draw(st.booleans()):
            fares.append(Fare(at, cost, key, draw(st.one_of(st.just(of_keys[key]), keyed))))
        else:
            fares.append(Fare(at, cost))
    kept = {key: draw(buckets(of_keys[key])) for key in KEYS if draw(st.booleans())}
    mine = draw(buckets(own)) if own is not None and draw(st.booleans()) else None
    return sorted(fares, key=lambda fare: fare.place), Purses(own, mine, kept, aside)


CHARGE = """
-- uses: toll
local fares, rate, own, buckets, asides, now = unpack(given, 1, 6)
local till = open_till(now, rate or nil, own or nil)
function till.bucket_of(key) return buckets[key] end
function till.aside_of(key, from, to)
  local found = {}
  for _, each in ipairs(asides[key] or {}) do
    if (not from or from < each[1]) and each[1] < to then found[#found + 1] = {each[2], each[3]} end
  end
  return found
end
local paid, aside, stopped = {}, {}, -1
for _, fare in ipairs(fares) do
  local what, moment = pay(till, {place = fare[1], cost = fare[2], key = fare[3], rate = fare[4] or nil})
  if what == PAID then paid[#paid + 1] = fare[1]
  elseif what == STEPS_ASIDE then aside[#aside + 1] = {fare[1], moment}
  else stopped = moment break end
end
local spent_from = {}
for key, plan in pairs(till.plans) do
  if plan.rate then spent_from[#spent_from + 1] = {key, plan.now, plan.rate.burst} end
end
return cmsgpack.pack({paid, aside, stopped, till.paid and {till.own} or {}, spent_from})
"""


@given(queues())
def test_a_toll_is_paid_as_in_core(case: tuple[list[Fare], Purses]) -> None:
    fares, purses = case
    asides = {
        key: [[place(each.place), each.until, each.cost] for each in sorted(all_)]
        for key, all_ in purses.aside.items()
    }
    paid, aside, stopped, own, keys = run(
        CHARGE,
        [[place(fare.place), fare.cost, fare.key, table(fare.rate) or False] for fare in fares],
        table(purses.rate) or False,
        split(purses.own) or False,
        {key: split(bucket) for key, bucket in purses.keys.items()},
        asides,
        NOW,
    )
    _check(charge(fares, purses, NOW), fares, (paid, aside, stopped, own, keys))


def _check(meant: Verdict, fares: Sequence[Fare], found: tuple[Any, ...]) -> None:
    paid, aside, stopped, own, keys = found
    ids = {place(fare.place): fare.id for fare in fares}
    assert [ids[each] for each in paid] == meant.paid
    assert [ids[each] for each, _ in aside] == list(meant.aside)
    assert all(same_moment(moment, meant.aside[ids[each]]) for each, moment in aside)
    assert (stopped == -1) if meant.until is None else same_moment(stopped, meant.until)
    assert [joined(each) for each in own] == ([] if meant.own is None else [meant.own])
    assert {key: (joined(bucket), burst) for key, bucket, burst in keys} == {
        key: (bucket, rate.burst) for key, (bucket, rate) in meant.keys.items()
    }
