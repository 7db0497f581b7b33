"""The settings of a queue for people and programs."""

from collections.abc import Callable
from typing import Any

from windlass.core.flow.queue import NO_AGEING, NO_LIMIT, NO_RATE, NONE, Queue, QueueRules, QueueSettings, merge
from windlass.core.moments import SECOND, show_duration
from windlass.core.status import FINISHED

LIMITS = ("max_concurrency", "rate_limit", "fair", "weights", "ageing")
"""Shown if set."""
MAX_SHOWN = 4
"""Weights, in a sentence."""

WORDS: dict[str, Callable[[QueueRules], str]] = {
    "max_concurrency": lambda rules: f"{rules.max_concurrency or 'any number'} at once",
    "rate_limit": lambda rules: str(rules.rate_limit or "any rate"),
    "fair": lambda rules: "fair" if rules.fair else "not fair",
    "weights": lambda rules: _weighed(rules),
    "ageing": lambda rules: f"ageing {show_duration(rules.ageing)}" if rules.ageing else "no ageing",
    "max_attempts": lambda rules: f"{rules.max_attempts} attempts",
    "retry": lambda rules: f"{type(rules.retry).__name__.lower()} back-off from {_seconds(rules.retry.base)}",
    "timeout": lambda rules: f"timeout {show_duration(rules.timeout)}" if rules.timeout else "no timeout",
    "retention": lambda rules: "keep " + ", ".join(_kept(rules)),
}


def sentence(queue: Queue) -> str:
    """The effective settings; on a line of its own what an operator has set beside the code."""
    rules, default = queue.rules, merge(QueueSettings(), QueueSettings())
    words = {name: word(rules) for name, word in WORDS.items()}
    limits = [words[name] for name in LIMITS if _said(queue.changed, name) or words[name] != WORDS[name](default)]
    retry = [words["retry"]] if rules.retry != default.retry else []
    attempts = ", ".join([words["max_attempts"], *retry, words["timeout"]])
    said = f"{attempts}, unless the task says otherwise; {words['retention']}"
    return "; ".join(filter(None, [", ".join(limits), said])) + _by_operator(queue)


def _by_operator(queue: Queue) -> str:
    plain = merge(queue.declared, QueueSettings())
    names = [name for name in WORDS if _said(queue.changed, name)]
    each = [
        name.replace("_", "-") + (f" (the code says {WORDS[name](plain)})" if _said(queue.declared, name) else "")
        for name in names
    ]
    return f"\nSet by an operator: {', '.join(each)}" if each else ""


def _said(settings: QueueSettings, name: str) -> bool:
    return getattr(settings, name) not in (None, {})


def _weighed(rules: QueueRules) -> str:
    if not rules.weights:
        return "equal weights"
    shown = [f"{tenant} {weight:g}" for tenant, weight in list(rules.weights.items())[:MAX_SHOWN]]
    more = len(rules.weights) - len(shown)
    idle = "" if rules.fair else " (without effect: not fair)"
    return "weights " + ", ".join(shown) + (f" and {more} more" if more else "") + idle


def _seconds(seconds: float) -> str:
    return show_duration(round(seconds * SECOND))


def _kept(rules: QueueRules) -> list[str]:
    return [f"{status} {show_duration(rules.retention[status])}" for status in sorted(FINISHED)]


def record(settings: QueueSettings | QueueRules) -> dict[str, Any]:
    """Settings for programs, in the form of the options: seconds, rates as text; null if not set."""
    rate, limit, ageing, timeout = settings.rate_limit, settings.max_concurrency, settings.ageing, settings.timeout
    rules = isinstance(settings, QueueRules)
    return {
        "max_attempts": settings.max_attempts,
        "retry": settings.retry,
        "timeout": (timeout / SECOND or (None if rules else NONE)) if timeout is not None else None,
        "retention": {str(status): micros / SECOND for status, micros in settings.retention.items()},
        "max_concurrency": NONE if limit == NO_LIMIT else limit,
        "rate_limit": NONE if rate == NO_RATE else None if rate is None else str(rate),
        "fair": settings.fair,
        "weights": settings.weights,
        "ageing": NONE if ageing == NO_AGEING else None if ageing is None else ageing / SECOND,
    }
