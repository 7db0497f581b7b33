"""Token buckets and rate checks are computed in a script just as in core, to the last unit."""

from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from tests.redis.lua import run
from windlass.core.flow.rate import MAX_TOKENS, Rate, TokenBucket, ready_at, refilled
from windlass.core.flow.rate_check import JobOrder, RateDecision, StartCost, Throttled, TokenBuckets, check_rates
from windlass.core.moments import DAY, SECOND, Micros

EXACT = 2**53
"""Numbers in a script are exact up to here: the year 2255."""
NOW: Micros = 1_800_000_000 * SECOND

periods = st.one_of(
    st.sampled_from([SECOND, 60 * SECOND, 3600 * SECOND, DAY]), st.integers(1, 86_400).map(SECOND.__mul__)
)
tokens = st.one_of(st.sampled_from([1, 2, 3, 7, 10, 1000, 1023, 1024, 1025, MAX_TOKENS]), st.integers(1, MAX_TOKENS))
rates = st.builds(Rate, tokens, periods, tokens)
passed = st.one_of(st.integers(-20 * SECOND, 20 * SECOND), st.integers(0, 40 * 365 * DAY), st.integers(0, 5))


@st.composite
def token_buckets(draw: st.DrawFn, rate: Rate) -> TokenBucket:
    """What a token bucket of this rate, or of another, may have been."""
    other = draw(st.one_of(st.just(rate), rates))
    credit = draw(st.integers(0, other.burst * other.period))
    return TokenBucket(credit, other.period, NOW - draw(passed))


@st.composite
def refills(draw: st.DrawFn) -> tuple[Rate, TokenBucket, int]:
    """A token bucket, its rate and how many tokens are wanted."""
    rate = draw(rates)
    return rate, draw(token_buckets(rate)), draw(tokens)


def split(token_bucket: TokenBucket | None) -> dict[str, int] | None:
    """As scripts have it."""
    if token_bucket is None:
        return None
    whole, part = divmod(token_bucket.credit, token_bucket.period)
    return {"whole": whole, "part": part, "period": token_bucket.period, "at": token_bucket.at}


def joined(found: dict[str, Any]) -> TokenBucket:
    """As core has it."""
    return TokenBucket(
        int(found["whole"]) * int(found["period"]) + int(found["part"]), int(found["period"]), int(found["at"])
    )


def table(rate: Rate | None) -> dict[str, int] | None:
    """As scripts have it."""
    return None if rate is None else {"tokens": rate.tokens, "period": rate.period, "burst": rate.burst}


def same_moment(found: float, meant: Micros) -> bool:
    """To the microsecond; only beyond the year 2255 it is as near as numbers there are."""
    return found == meant if meant < EXACT else abs(found - meant) <= meant / EXACT * 4


@given(refills())
def test_a_token_bucket_is_refilled_as_in_core(case: tuple[Rate, TokenBucket, int]) -> None:
    rate, token_bucket, wanted = case
    found, moment = run(
        """
        --! uses: token_bucket
        local full = refilled(given[2], given[1], given[3])
        return cmsgpack.pack({full, ready_at(full, given[1], given[4])})
        """.replace("        ", ""),
        table(rate),
        split(token_bucket),
        NOW,
        wanted,
    )
    meant = refilled(token_bucket, rate, NOW)
    assert joined(found) == meant
    assert same_moment(moment, ready_at(meant, rate, wanted))


KEYS = ("k" * 32, "l" * 32)


def place(text: JobOrder) -> str:
    """A place that sorts as it does in core."""
    sort_priority, rank, id_ = text
    return f"{sort_priority + 32768:05}{rank:020}{id_}"


@st.composite
def queues(draw: st.DrawFn) -> tuple[list[StartCost], TokenBuckets]:
    """Jobs in a line, and what there is to be spent."""
    own = draw(st.one_of(st.none(), rates, st.builds(Rate, st.integers(1, 5), periods, st.integers(1, 9))))
    keyed = st.builds(Rate, st.integers(1, 5), st.just(SECOND), st.integers(1, 9))
    of_keys = {key: draw(st.one_of(keyed, rates)) for key in KEYS}
    places = draw(st.lists(st.tuples(st.integers(-2, 2), st.integers(0, 9)), min_size=1, max_size=12))
    costs, throttled = [], {key: [] for key in KEYS}  # type: tuple[list[StartCost], dict[str, list[Throttled]]]
    for number, (sort_priority, rank) in enumerate(places):
        at, cost, key = (sort_priority, rank, f"{number:036}"), draw(st.integers(1, 12)), draw(st.sampled_from(KEYS))
        if draw(st.integers(0, 2)) == 0:
            throttled[key].append(Throttled(at, NOW + draw(st.integers(-SECOND, 5 * SECOND)), cost))
        elif draw(st.booleans()):
            costs.append(StartCost(at, cost, key, draw(st.one_of(st.just(of_keys[key]), keyed))))
        else:
            costs.append(StartCost(at, cost))
    kept = {key: draw(token_buckets(of_keys[key])) for key in KEYS if draw(st.booleans())}
    mine = draw(token_buckets(own)) if own is not None and draw(st.booleans()) else None
    return sorted(costs, key=lambda each: each.order), TokenBuckets(own, mine, kept, throttled)


CHARGE = """
--! uses: rate_check
local charges, rate, own, token_buckets, throttled_by_key, now = unpack(given, 1, 6)
local session = open_rate_session(now, rate or nil, own or nil)
function session.token_bucket_of(key) return token_buckets[key] end
function session.throttled_of(key, from, to)
  local found = {}
  for _, each in ipairs(throttled_by_key[key] or {}) do
    if (not from or from < each[1]) and each[1] < to then found[#found + 1] = {each[2], each[3]} end
  end
  return found
end
local paid, throttled, stopped = {}, {}, -1
for _, charge in ipairs(charges) do
  local due = {order = charge[1], cost = charge[2], key = charge[3], rate = charge[4] or nil}
  local what, moment = check_rate(session, due)
  if what == PAID then paid[#paid + 1] = charge[1]
  elseif what == THROTTLE then throttled[#throttled + 1] = {charge[1], moment}
  else stopped = moment break end
end
local spent_from = {}
for key, budget in pairs(session.budgets) do
  if budget.rate then spent_from[#spent_from + 1] = {key, budget.now, budget.rate.burst} end
end
return cmsgpack.pack({paid, throttled, stopped, session.paid and {session.queue_token_bucket} or {}, spent_from})
"""


@given(queues())
def test_a_rate_check_costs_what_it_does_in_core(case: tuple[list[StartCost], TokenBuckets]) -> None:
    costs, token_buckets = case
    all_throttled = {
        key: [[place(each.order), each.until, each.cost] for each in sorted(all_)]
        for key, all_ in token_buckets.throttled.items()
    }
    paid, throttled, stopped, own, keys = run(
        CHARGE,
        [[place(each.order), each.cost, each.key, table(each.rate) or False] for each in costs],
        table(token_buckets.rate) or False,
        split(token_buckets.queue_token_bucket) or False,
        {key: split(token_bucket) for key, token_bucket in token_buckets.key_token_buckets.items()},
        all_throttled,
        NOW,
    )
    _check(check_rates(costs, token_buckets, NOW), costs, (paid, throttled, stopped, own, keys))


def _check(meant: RateDecision, costs: Sequence[StartCost], found: tuple[Any, ...]) -> None:
    paid, throttled, stopped, own, keys = found
    ids = {place(each.order): each.id for each in costs}
    assert [ids[each] for each in paid] == meant.allowed
    assert [ids[each] for each, _ in throttled] == list(meant.throttled)
    assert all(same_moment(moment, meant.throttled[ids[each]]) for each, moment in throttled)
    assert (stopped == -1) if meant.until is None else same_moment(stopped, meant.until)
    assert [joined(each) for each in own] == ([] if meant.queue_token_bucket is None else [meant.queue_token_bucket])
    assert {key: (joined(token_bucket), burst) for key, token_bucket, burst in keys} == {
        key: (token_bucket, rate.burst) for key, (token_bucket, rate) in meant.key_token_buckets.items()
    }
