"""Unknown names in errors: the closest name that exists, and the others."""

from collections.abc import Collection, Iterable
from difflib import get_close_matches

from windlass.errors import InvalidOption

MAX_NAMED = 10
"""Names in an error message."""
OPTIONS_ELSEWHERE = {
    "countdown": "delay",
    "eta": "run_at",
    "task_id": "id",
    "name": "type",
    "retries": "max_attempts",
    "max_retries": "max_attempts",
    "retry_policy": "retry",
    "retry_backoff": "retry",
    "default_retry_delay": "retry",
    "time_limit": "timeout",
    "soft_time_limit": "timeout",
    "concurrency": "max_concurrency",
    "rate": "rate_limit",
    "state": "status",
    "crontab": "cron",
    "timezone": "tz",
    **dict.fromkeys(("interval", "seconds", "minutes", "hours", "days"), "every"),
}
"""Options of other queues, and the closest of Windlass."""
STATUSES_ELSEWHERE = {
    **dict.fromkeys(("done", "success", "successful", "succeeded", "finished", "complete"), "completed"),
    **dict.fromkeys(("queued", "waiting", "ready", "available", "enqueued"), "pending"),
    **dict.fromkeys(("started", "active", "executing"), "running"),
    **dict.fromkeys(("failure", "discarded"), "dead"),
    **dict.fromkeys(("retry", "retrying", "error"), "failed"),
    **dict.fromkeys(("revoked", "canceled", "aborted"), "cancelled"),
    **dict.fromkeys(("delayed", "deferred"), "scheduled"),
}
"""Statuses of other queues, and those of Windlass."""


def suggest(name: str, known: Iterable[str]) -> str:
    """An addition to an error about an unknown name: the closest existing name, and the other ones."""
    names = sorted(set(known))
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    listed = f"{', '.join(names[:MAX_NAMED])}{more}"
    if not names:
        return ""
    close = get_close_matches(name, names, n=1)
    return f"; did you mean {close[0]!r}? There are {listed}" if close else f"; there are {listed}"


def unknown_option(name: str, known: Collection[str], noun: str) -> InvalidOption:
    """The error for an option that does not exist, with the closest existing one."""
    ours = OPTIONS_ELSEWHERE.get(name)
    close = [ours] if ours in known else get_close_matches(name, known, n=1)
    guess = f"did you mean {close[0]}? " if close else ""
    return InvalidOption(name, f"is not {noun}; {guess}there are {', '.join(sorted(known))}")
