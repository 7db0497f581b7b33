"""Numbers, durations and bars in a few characters each."""

from collections.abc import Sequence

_BARS = "▁▂▃▄▅▆▇█"
_PLAIN_BARS = "_.:-=+*#"
"""For terminals without block characters."""
_NONE = "-"


def amount(number: int) -> str:
    """1234, 56.7k, 8.9M: at most five characters."""
    return str(number) if number < 10_000 else _scaled(number)


def rate(per_second: float) -> str:
    """0.02, 4.2, 420, 12.3k."""
    if per_second >= 10_000:
        return _scaled(per_second)
    if per_second >= 99.95:
        return f"{per_second:.0f}"
    if per_second >= 0.95:
        return f"{per_second:.1f}"
    return f"{per_second:.2f}" if per_second else "0"


def span(seconds: float | None) -> str:
    """0.4ms, 42ms, 4.2s, 12m, 3h: at most five characters."""
    if seconds is None:
        return _NONE
    if seconds < 0.9995:
        millis = seconds * 1000
        return f"{millis:.1f}ms" if 0 < millis < 9.95 else f"{millis:.0f}ms"
    if seconds < 99.5:
        return f"{seconds:.1f}s" if seconds < 9.95 else f"{seconds:.0f}s"
    for unit, size, most in (("m", 60, 99.5), ("h", 3600, 47.5)):
        if seconds / size < most:
            return f"{seconds / size:.0f}{unit}"
    return f"{seconds / 86_400:.0f}d"


def ago(seconds: float | None) -> str:
    """now, 4s ago, 12m ago."""
    if seconds is None:
        return _NONE
    return f"{span(int(seconds)).replace('.0s', 's')} ago" if seconds >= 1 else "now"


def spark(values: Sequence[int], width: int) -> str:
    """Values as a row of bars, the newest last; blank before the first.

    The lowest bar means zero, so that one job is visible beside a thousand.
    """
    shown = values[-width:] if width > 0 else []
    most = max(shown, default=0)
    bars = "".join(_bar(each, most) for each in shown)
    return bars.lstrip(_BARS[0]).rjust(len(bars))


def bars(values: Sequence[float | None], *, plain: bool = False) -> str:
    """Values with gaps as a row of bars: a gap is blank, the lowest bar means zero."""
    most = max((each for each in values if each is not None), default=0)
    scale = _PLAIN_BARS if plain else _BARS
    return "".join(" " if each is None else _bar(each, most, scale) for each in values)


def _bar(count: float, most: float, scale: str = _BARS) -> str:
    return scale[max(1, round(count / most * (len(scale) - 1)))] if count else scale[0]


def _scaled(number: float) -> str:
    for unit, size in (("k", 1e3), ("M", 1e6), ("G", 1e9)):
        if number < 999.5 * size:
            return f"{number / size:.1f}{unit}" if number < 99.95 * size else f"{number / size:.0f}{unit}"
    return f"{number:.0e}"
