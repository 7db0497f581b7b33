"""Leases in plain Python: until when each holds, and what a general silence does to them."""

from windlass.core.moments import Micros


class Leases:
    """Until when each runner's lease holds, and when anybody was last heard of."""

    def __init__(self) -> None:
        self.ends: dict[str, Micros] = {}
        self._pulse: Micros | None = None
        self._graced: set[str] = set()

    def open(self, runner: str, length: Micros, now: Micros) -> None:
        """A new lease."""
        self.feel_pulse(length, now)
        self.ends.setdefault(runner, now + length)

    def renew(self, runners: list[str], length: Micros, now: Micros) -> list[str]:
        """Those that were kept."""
        self.feel_pulse(length, now)
        kept = [runner for runner in runners if self.holds(runner, now)]
        self.ends.update(dict.fromkeys(kept, now + length))
        self._graced -= set(kept)
        return kept

    def lapsed(self, length: Micros, now: Micros) -> list[str]:
        """Whom a rescuer takes: nobody, if it is the first to come after a general silence."""
        if all(self.holds(runner, now) for runner in self.ends):
            return []
        self.feel_pulse(length, now)
        return [runner for runner in self.ends if not self.holds(runner, now)]

    def holds(self, runner: str, now: Micros) -> bool:
        """Whether the lease is there and not over."""
        return self.ends.get(runner, now) > now

    def feel_pulse(self, length: Micros, now: Micros) -> None:
        """After a general silence, grace for everybody: once, until renewed."""
        if self._pulse is not None and now - self._pulse > length // 2:
            for runner in self.ends.keys() - self._graced:
                self.ends[runner] = max(self.ends[runner], now + length)
            self._graced |= self.ends.keys()
        self._pulse = now
