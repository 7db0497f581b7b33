"""Templates: escaped, control characters made visible, times that the browser shows in its own zone."""

import re
from datetime import UTC, datetime
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from windlass.core.moments import SECOND, show_duration
from windlass.core.status import Status
from windlass.core.text import cut, printable
from windlass.server.dashboard.page import link

MAX_CELL = 160
"""Characters of a text in a list."""


def make_templates() -> Environment:
    """The templates, read from the package once."""
    made = Environment(
        loader=PackageLoader("windlass.server.dashboard"),
        autoescape=True,
        auto_reload=False,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_visible,
    )
    made.filters.update(
        moment=moment, ago=ago, span=span, number=number, rate=rate, cell=cell, share=share, sentence=sentence
    )
    made.filters.update(capitalize_first=capitalize_first, size=size, axis=axis, clocks=clocks)
    made.globals.update(link=link, STATUSES=[str(each) for each in Status])
    return made


def _visible(value: Any) -> Any:
    """Control characters as escapes, so that text of a job cannot reorder, hide or break the text around it."""
    if isinstance(value, str) and not isinstance(value, Markup) and not value.isprintable():
        return printable(value)
    return value


def moment(at: datetime | None) -> Markup:
    """A time of day; exact on hover."""
    return _time(at, "clock")


def ago(at: datetime | None) -> Markup:
    """How long ago, or in how long, kept up to date by the browser; exact on hover."""
    return _time(at, "ago")


def axis(at: datetime) -> Markup:
    """A time at the axis of a plot, to the minute."""
    return _time(at, "axis")


def clocks(text: str, at: datetime) -> Markup:
    """A sentence whose first time the browser shows in its zone; a time without a date is of the day of `at`."""
    found = _CLOCK.search(text)
    if found is None:
        return escape(_visible(text))
    day, clock = found.groups()
    try:
        moment_ = datetime.fromisoformat(f"{day or f'{at.astimezone(UTC):%Y-%m-%d}'}T{clock}+00:00")
    except ValueError:  # the text of an error may have any digits there
        return escape(_visible(text))
    before, after = text[: found.start()], text[found.end() :]
    return Markup("{}{}{}").format(_visible(before), _time(moment_, "clock"), _visible(after))


_CLOCK = re.compile(r"(?:(\d{4}-\d\d-\d\d) )?\b(\d\d:\d\d:\d\d) UTC", re.ASCII)


def _time(at: datetime | None, form: str) -> Markup:
    if at is None:
        return Markup('<span class="none">–</span>')
    utc = at.astimezone(UTC)
    exact, plain = utc.isoformat(timespec="milliseconds"), utc.strftime("%Y-%m-%d %H:%M:%S UTC")
    return Markup('<time datetime="{}" data-form="{}" title="{}">{}</time>').format(exact, form, plain, plain)


def span(seconds: float | None) -> str:
    """A length of time."""
    return "–" if seconds is None else show_duration(max(0, round(seconds * SECOND)))


def number(value: float | None) -> str:
    """A number with separators."""
    return "–" if value is None else f"{value:,.0f}" if value == round(value) else f"{value:,.1f}"


def rate(per_second: float) -> str:
    """A rate in the unit that reads best."""
    if per_second == 0:
        return "0/s"
    if per_second >= 1:
        return f"{per_second:,.1f}/s" if per_second < 100 else f"{per_second:,.0f}/s"
    return f"{per_second * 60:,.1f}/min"


def share(part: float, whole: float) -> str:
    """A part of a whole, in percent."""
    return "–" if not whole else f"{100 * part / whole:.3g}%"


def sentence(text: str | None) -> str:
    """Begun with a capital and ended with a full stop."""
    return "" if not text else text[0].upper() + text[1:].rstrip(".") + "."


def capitalize_first(text: str) -> str:
    """Begun with a capital; the rest as it is."""
    return text[:1].upper() + text[1:]


def size(count: int | None) -> str:
    """A number of bytes."""
    if count is None:
        return "–"
    return f"{count / 2**20:,.0f} MiB" if count < 2**30 else f"{count / 2**30:,.1f} GiB"


def cell(text: str | None, limit: int = MAX_CELL) -> str:
    """The beginning of a text on one line."""
    return cut(" ".join((text or "").split()), limit)
