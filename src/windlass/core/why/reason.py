"""A reason why a job waits, runs or ended, and helpers for its text."""

from collections.abc import Sequence
from datetime import datetime

import msgspec

from windlass.core.ids import JobId
from windlass.core.moments import Micros, show_duration, to_datetime
from windlass.core.status import Status
from windlass.core.why.facts import Count, Holder


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """A reason: `code` is for programs and never changes, `text` and `do` are for people."""

    code: str
    text: str
    """One sentence."""
    do: str | None = None
    """What to do about it: a command, or a sentence; None: only wait."""
    until: datetime | None = None
    """When it ends by itself, if known."""
    jobs: tuple[JobId, ...] = ()
    """Jobs related to it; not always all of them."""
    count: int | None = None
    """The number that the sentence counts."""
    at_least: bool = False
    """Whether there may be more than `count`."""


def span(micros: Micros) -> str:
    """A duration for people, never negative."""
    return show_duration(max(0, micros))


def at(moment: Micros, now: Micros) -> str:
    """A moment for people: the time and how far off it is; with the date if it is not today."""
    when, today = to_datetime(moment), to_datetime(now).date()
    shown = when.strftime("%H:%M:%S UTC" if when.date() == today else "%Y-%m-%d %H:%M:%S UTC")
    off = f"in {span(moment - now)}" if moment > now else f"{span(now - moment)} ago"
    return f"{shown} ({off})"


def many(count: Count, one: str, more: str) -> str:
    """`1 job`, `1,000+ jobs`."""
    return f"{count} {one if count.jobs == 1 and not count.at_least else more}"


def listed(holders: Sequence[Holder], now: Micros, count: Count) -> str:
    """Jobs with their states; jobs that are not named are counted."""
    if not holders:
        return many(count, "job", "jobs") if count.jobs else ""
    named = "; ".join(f"{each.id} ({_doing(each, now)})" for each in holders)
    left = count.jobs - len(holders)
    return named + (f"; and {left:,}{' or more' if count.at_least else ''} more" if left > 0 else "")


def _doing(holder: Holder, now: Micros) -> str:
    if holder.status is Status.FAILED and holder.run_at > now:
        return f"failed {span(now - holder.since)} ago, next try in {span(holder.run_at - now)}"
    since = f"{holder.status} for {span(now - holder.since)}"
    return since if holder.run_at <= now else f"{since}, due in {span(holder.run_at - now)}"


def short(text: str, limit: int = 120) -> str:
    """The first line of a text, cut."""
    line = text.partition("\n")[0].rstrip(".")
    return line if len(line) <= limit else line[: limit - 1] + "…"
