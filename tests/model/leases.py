"""Leases in plain Python: until when each holds, and what a general silence does to them."""

from collections import Counter

from windlass.core.grace import MIN_OUTAGE, Silence, gets_grace
from windlass.core.moments import Micros


class Leases:
    """Until when each runner's lease holds, and when a renewal or a look came last."""

    def __init__(self, margin: Micros = 0) -> None:
        """`margin`: how much later than it ends a lease is refused or ended, where clocks differ."""
        self._margin = margin
        self.ends: dict[str, Micros] = {}
        self._pulse: Micros | None = None
        self._seen: Micros = 0
        self._graced_until: Micros = 0
        self._graces: Counter[str] = Counter()

    def open(self, runner: str, length: Micros, now: Micros) -> None:
        """A new lease."""
        self.feel_pulse(length, now)
        self.ends.setdefault(runner, now + length)

    def renew(self, runners: list[str], length: Micros, now: Micros) -> list[str]:
        """Those that were kept."""
        self.feel_pulse(length, now)
        kept = [runner for runner in runners if self.holds(runner, now - self._margin)]
        self.ends.update(dict.fromkeys(kept, now + length))
        self._graces.update({runner: -self._graces[runner] for runner in kept})
        if kept:
            self._pulse = now
        return kept

    def lapsed(self, length: Micros, now: Micros) -> list[str]:
        """The runners that a rescue takes: none, if it is the first call after a general silence."""
        graced = now <= self._graced_until
        late = not all(self.holds(runner, now - self._margin) for runner in self.ends)
        if late or (graced and now - max(self._pulse or 0, self._seen) > MIN_OUTAGE):
            self.feel_pulse(length, now)
        if graced:
            self._seen = now
        return [runner for runner in self.ends if not self.holds(runner, now - self._margin)]

    def holds(self, runner: str, now: Micros) -> bool:
        """Whether the lease is there and not over."""
        return self.ends.get(runner, now) > now

    def feel_pulse(self, length: Micros, now: Micros) -> None:
        """After a general silence, a grace for every runner."""
        if self._pulse is None:
            self._pulse = now
        if now - self._pulse > length // 2:
            silence = Silence(now - self._pulse, now - max(self._pulse, self._seen))
            for runner in self.ends:
                if gets_grace(self._graces[runner], length, silence):
                    self.ends[runner] = max(self.ends[runner], now + length)
                    self._graces[runner] += 1
                    self._graced_until = now + length
            self._pulse = self._seen = now
