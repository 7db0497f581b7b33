"""Whether every accepted job came to its end, and none ran again without a reason."""

from collections import defaultdict
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

AGAIN_BY_ITSELF = ("flaky", "doomed", "snooze")
"""Tasks that run more than once by what their handler does."""
MAX_FAILURES = 2
"""Attempts of a job that becomes a dead letter."""


class Account(NamedTuple):
    """What accepted jobs came to."""

    accepted: int
    lost: tuple[str, ...]
    """Accepted, and not ended as expected."""
    again: tuple[str, ...]
    """Ran again though nothing had killed the process of the attempt before."""
    killed: int
    """Ran again because their process was killed."""
    attempts: int
    ticks: int
    """Jobs that schedules made."""


class Attempt(NamedTuple):
    number: int
    pid: int
    parent: int


def account(folder: Path, killed: Collection[int]) -> Account:
    """Compare the files of accepted ids and of attempts."""
    accepted = dict(line.split() for line in (folder / "accepted").read_text().splitlines())
    done: set[str] = set()
    failed: dict[str, int] = defaultdict(int)
    began: dict[str, list[Attempt]] = defaultdict(list)
    types: dict[str, str] = {}
    for line in (folder / "ledger").read_text().splitlines():
        word, id_, number, pid, parent, type_ = line.split()
        types[id_] = type_
        if word == "began":
            began[id_].append(Attempt(int(number), int(pid), int(parent)))
        elif word == "done":
            done.add(id_)
        else:
            failed[id_] += 1
    repeated = {id_: tries for id_, tries in began.items() if len(tries) > 1 and types[id_] not in AGAIN_BY_ITSELF}
    again = [id_ for id_, tries in repeated.items() if not _explained(tries, killed)]
    return Account(
        accepted=len(accepted),
        lost=tuple(id_ for id_, expected in accepted.items() if not _ended(id_, expected, done, failed)),
        again=tuple(again),
        killed=len(repeated) - len(again),
        attempts=sum(map(len, began.values())),
        ticks=sum(type_ in ("tick", "slow_tick") for type_ in types.values()),
    )


def _ended(id_: str, expected: str, done: set[str], failed: dict[str, int]) -> bool:
    if expected == "any":
        return True
    return id_ in done if expected == "done" else failed[id_] >= MAX_FAILURES


def _explained(tries: list[Attempt], killed: Collection[int]) -> bool:
    """Every attempt but the last was in a process that was killed, or in a subprocess of one."""
    earlier = sorted(tries)[:-1]
    return all(attempt.pid in killed or attempt.parent in killed for attempt in earlier)
