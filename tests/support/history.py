"""What really happened: the effects that handlers left in a file, whatever the store believes."""

from collections import Counter, defaultdict
from itertools import pairwise
from pathlib import Path

import msgspec


class Effect(msgspec.Struct, frozen=True):
    """One line: a handler started, was still there, or ended."""

    kind: str
    type: str
    job: str
    attempt: int
    pid: int
    at: int
    """Nanoseconds of the monotonic clock, which all processes share."""


class History:
    """The effects of one test, in the order in which they were written."""

    def __init__(self, path: Path) -> None:
        # A line without its end is still being written: a reader may see half of a write that crosses a page.
        written = path.read_text().rpartition("\n")[0] if path.exists() else ""
        self.effects = [_parse(line) for line in written.splitlines()]

    def starts(self, job: str | None = None, type: str | None = None) -> list[Effect]:
        """Where handlers began."""
        return self._of("start", job, type)

    def ends(self, job: str | None = None, type: str | None = None) -> list[Effect]:
        """Where handlers came to their own end."""
        return self._of("end", job, type)

    def runs(self) -> Counter[str]:
        """How often each job began."""
        return Counter(effect.job for effect in self.starts())

    def last_sign(self, job: str, attempt: int) -> int:
        """The last moment at which this attempt was seen alive."""
        return max(e.at for e in self.effects if (e.job, e.attempt) == (job, attempt))

    def most_at_once(self, type: str) -> int:
        """The most handlers of a type that ran at the same time."""
        now = most = 0
        for effect in sorted((e for e in self.effects if e.type == type), key=lambda e: e.at):
            now += {"start": 1, "end": -1}.get(effect.kind, 0)
            most = max(most, now)
        return most

    def check(self) -> None:
        """What holds in every history: no attempt number twice, no attempt before the one before it is over."""
        begun = Counter((effect.job, effect.attempt) for effect in self.starts())
        assert [each for each, times in begun.items() if times > 1] == [], "an attempt number was used twice"
        spans: dict[str, dict[int, list[int]]] = defaultdict(lambda: defaultdict(list))
        for effect in self.effects:
            spans[effect.job][effect.attempt].append(effect.at)
        for job, attempts in spans.items():
            ordered = [attempts[number] for number in sorted(attempts)]
            for before, after in pairwise(ordered):
                assert max(before) < min(after), f"two attempts of {job} overlap"

    def _of(self, kind: str, job: str | None, type: str | None) -> list[Effect]:
        return [e for e in self.effects if e.kind == kind and job in (None, e.job) and type in (None, e.type)]


def _parse(line: str) -> Effect:
    kind, type_, job, attempt, pid, at = line.split()
    return Effect(kind, type_, job, int(attempt), int(pid), int(at))
