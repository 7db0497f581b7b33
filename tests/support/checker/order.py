"""I8: what was stored first is claimed first, except past rows that another transaction had locked."""

from bisect import bisect_right, insort
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from tests.support.checker.cut_claims import CutClaim
from tests.support.checker.laws import acknowledged_on, first_claim
from tests.support.checker.lives import Life, Times

Found = tuple[str | None, str]
"""A job, if one can be named, and what is wrong."""
Jobs = Mapping[str, dict[str, Any]]

NOTICED = 1_000_000_000
"""Nanoseconds after which a server has noticed that a client is gone."""
FOUND = 61_000_000_000
"""Nanoseconds after which claims have found what they had passed over: docs/guarantees.md, order."""


def out_of_order(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I8: of two jobs in a queue with the same priority, the one that was stored first is claimed first.

    In a queue of tenants, of two of the same tenant; those with a concurrency key have a line of their own. In a
    queue with a limit, claims that meet on a server pass over rows that another one has locked and then may not take.
    """
    limited = {line["queue"] for line in times.rules if line.get("max_concurrency")}
    fair = {line["queue"] for line in times.rules if line.get("fair")}
    lines: dict[tuple[str, int, str | None], list[Life]] = defaultdict(list)
    for life in times.lives.values():
        if life.enqueues and first_claim(life) is not None and not life.acts and not _was_hidden(life, times):
            facts = life.enqueues[0].facts
            if not facts["waits"] and facts.get("concurrency_key") is None and facts["queue"] not in limited:
                tenant = facts.get("tenant") if facts["queue"] in fair else None
                lines[facts["queue"], facts["priority"], tenant].append(life)
    locks = list(_locks(times))
    for (queue, *_), line in lines.items():
        yield from _overtaken(line, [lock for lock in locks if queue in lock.claim.queues])


def _was_hidden(life: Life, times: Times) -> bool:
    """Whether it waited at a time when a stranger may have held its row: claims do not wait for that."""
    claimed = _asked(life)
    return any(f.hides and acknowledged_on(life) <= f.until and f.at <= claimed for f in times.faults)


class _Lock(msgspec.Struct):
    """The rows of a claim that was cut: at most as many as it asked for, until the server has noticed."""

    claim: CutClaim
    until: int
    excused: set[str]

    def excuses(self, passed_over: Life, first: Life) -> bool:
        """Whether one may have been locked when claims went past it to the other, and not been found again yet."""
        locked = acknowledged_on(passed_over) <= self.until and self.claim.invoked <= _answered(first)
        if not locked or _asked(passed_over) > self.until + FOUND:
            return False
        if len(self.excused | {passed_over.id}) > self.claim.limit:
            return False
        self.excused.add(passed_over.id)
        return True


def _locks(times: Times) -> Iterator[_Lock]:
    """Only a store that passes over locked rows has them."""
    if "skips_locked" not in times.marks:
        return
    for cut in times.cut_claims:
        deaths = [f.until for f in times.faults if cut.pid in f.pids and f.until >= cut.invoked]
        over = cut.answered if cut.answered is not None else min(deaths, default=cut.invoked)
        yield _Lock(cut, over + NOTICED, set())


def _overtaken(line: list[Life], locks: list[_Lock]) -> Iterator[Found]:
    stored = sorted(line, key=acknowledged_on)
    place, before = 0, list[Life]()
    for life in sorted(line, key=lambda life: life.enqueues[0].invoked):
        while place < len(stored) and acknowledged_on(stored[place]) < life.enqueues[0].invoked:
            insort(before, stored[place], key=_asked)
            place += 1
        late = before[bisect_right(before, _answered(life), key=_asked) :]
        for other in late:
            if not any(lock.excuses(other, life) for lock in locks):
                yield life.id, f"it was claimed before {other.id}, which had been stored before it was enqueued"
                break


def _answered(life: Life) -> int:
    claim = first_claim(life)
    assert claim is not None
    return claim.answered


def _asked(life: Life) -> int:
    claim = first_claim(life)
    assert claim is not None
    return claim.invoked
