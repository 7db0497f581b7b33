"""What a handler may raise to decide its own outcome."""

from windlass.core.moments import Duration, duration


class _Control(Exception):
    """A decision, not an error: `except WindlassError` does not catch it."""


class Retry(_Control):
    """This attempt failed: try again after the given time instead of the policy's."""

    def __init__(self, after: Duration | None = None, reason: str = "retry asked for") -> None:
        if after is not None:
            duration(after, "after")
        super().__init__(reason)
        self.after, self.reason = after, reason


class Snooze(_Control):
    """Nothing failed, but it is too early: run again later, without using up the retry budget."""

    def __init__(self, delay: Duration) -> None:
        duration(delay, "delay")
        super().__init__(f"snoozed for {delay}")
        self.delay = delay


class Cancel(_Control):
    """The work is no longer wanted: end as `cancelled`."""

    def __init__(self, reason: str = "cancelled by its handler") -> None:
        super().__init__(reason)
        self.reason = reason


class Dead(_Control):
    """Trying again is pointless: end as `dead` at once."""

    def __init__(self, reason: str = "given up by its handler") -> None:
        super().__init__(reason)
        self.reason = reason
