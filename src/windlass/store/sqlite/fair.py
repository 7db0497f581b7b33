"""Fair claims: priority by priority, tenants take turns by their weights."""

from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import TypeVar

from windlass.core.fairness import took, turns
from windlass.core.ids import JobId
from windlass.core.job import HIGHEST_PRIORITY
from windlass.core.toll import Fare
from windlass.store.sqlite.db import array
from windlass.store.sqlite.mend import json_of
from windlass.store.sqlite.recall import Round
from windlass.store.sqlite.ruled import Ruled
from windlass.store.sqlite.tolls import to_fare

T = TypeVar("T")

LISTED = 200
"""So many tenants are looked at in one claim; where more have jobs waiting, the next claim goes on from there."""
NEXT = "\x01"
"""After a name, gives the first that can come after it: no name has a zero byte."""


def take_fairly(ruled: Ruled) -> None:
    """The highest priority first, and there whose turn it is."""
    after = -HIGHEST_PRIORITY - 1
    place = {"queue": ruled.queue}
    while ruled.left and (rows := ruled.db.rows("next_lanes", place | {"after": after})):
        after = rows[0][0]
        _take_turns(ruled, after)
    if ruled.left:
        # Who has no lane yet, because the queue has just become fair, comes after those who have.
        ruled.take_in_line()


def _take_turns(ruled: Ruled, urgency: int) -> None:
    """Until the claim is full, or everybody listed has given what he has; then the next are listed."""
    round_ = ruled.recall.round(ruled.queue, urgency)
    seen: set[str] = set()
    while ruled.left:
        listed = _list(ruled, urgency, round_)
        fresh = listed - seen
        if not fresh:
            return
        seen |= fresh
        _share(ruled, urgency, round_, fresh)


def _share(ruled: Ruled, urgency: int, round_: Round, waiting: set[str]) -> None:
    weights, taken, hopeful = ruled.terms.weights, Counter[str](), set(waiting)
    standing = round_.standing
    while ruled.left and hopeful:
        before = took(standing, taken, weights, hopeful) if taken else standing
        order = turns(before, hopeful, weights, ruled.left)
        begun, spent = _start(ruled, urgency, order)
        taken.update(begun)
        hopeful -= spent
        if spent.issuperset(order) and not begun:
            break
    known = {lane for lane in standing.ends if lane not in waiting}
    round_.standing = took(standing, taken, weights, hopeful | known)


def _start(ruled: Ruled, urgency: int, order: Sequence[str]) -> tuple[Counter[str], set[str]]:
    """Those whose turn it is start: how many of whom, and who has no more than that, as far as this runner knows."""
    shares = Counter(order)
    if ruled.free:
        heads = _heads(ruled, urgency, shares)
        ids = _in_turn(order, heads)
        ruled.take([id_ for _, id_ in ids])
        return Counter(lane for lane, _ in ids), {lane for lane, jobs in shares.items() if len(heads[lane]) < jobs}
    fares = _fares(ruled, urgency, shares)
    payers = _in_turn(order, fares)
    paid = ruled.pay([fare for _, fare in payers])
    begun = Counter(lane for lane, fare in payers if fare.id in paid)
    return begun, {lane for lane, jobs in shares.items() if len(fares[lane]) < jobs}


def _in_turn(order: Sequence[str], lines: Mapping[str, Sequence[T]]) -> list[tuple[str, T]]:
    """One after the other, as the turns come; where a line has ended, the turn is nobody's."""
    following = {lane: iter(own) for lane, own in lines.items()}
    turns_ = ((lane, next(following[lane], None)) for lane in order if lane in following)
    return [(lane, each) for lane, each in turns_ if each is not None]


def _heads(ruled: Ruled, urgency: int, shares: Counter[str]) -> dict[str, list[JobId]]:
    """Where nobody pays, ids are enough; whoever has fewer turns than others has some of them left over."""
    values = ruled.values | {"urgency": urgency, "lanes": array(shares), "most": max(shares.values())}
    heads = json_of(ruled.db, "lane_heads", values)
    return {lane: (ids or [])[: shares[lane]] for lane, ids in heads}


def _fares(ruled: Ruled, urgency: int, shares: Counter[str]) -> dict[str, list[Fare]]:
    values = ruled.values | {"urgency": urgency, "shares": array(shares.items())}
    fares: dict[str, list[Fare]] = defaultdict(list)
    for lane, row in json_of(ruled.db, "lane_fares", values):
        fares[lane].append(to_fare(row))
    return fares


def _list(ruled: Ruled, urgency: int, round_: Round) -> set[str]:
    """Tenants who have jobs waiting, from where the last listing ended, and round to there."""
    most, start = max(LISTED, ruled.left), round_.after + NEXT if round_.after else ""
    place = {"queue": ruled.queue, "urgency": urgency, "until": None}
    listed = json_of(ruled.db, "lanes", place | {"from": start, "limit": most})
    wrapped = bool(start) and len(listed) < most
    if wrapped:
        listed += json_of(ruled.db, "lanes", place | {"from": "", "until": start, "limit": most - len(listed)})
    last = round_.after = listed[-1] if len(listed) == most else ""
    # Who should have been listed and was not has nothing waiting, and is forgotten.
    found, ends = set(listed), round_.standing.ends
    round_.standing.ends = {
        lane: end for lane, end in ends.items() if lane in found or not _lies_between(lane, start, last, wrapped)
    }
    return found


def _lies_between(lane: str, start: str, last: str, wrapped: bool) -> bool:
    """Whether a listing from `start` to `last`, or of all if there is no last, has come past this one."""
    if not last:
        return True
    return lane >= start or lane <= last if wrapped else start <= lane <= last
