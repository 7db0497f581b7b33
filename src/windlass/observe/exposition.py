"""Families as text for Prometheus, in its own format or as OpenMetrics.

prometheus-client takes 120 ms and more for the largest scrape, this a tenth; the tests read the text with that
library's parsers (docs/decisions/0052-metrics-in-shared-memory.md).
"""

from collections.abc import Iterable, Iterator

from windlass.observe.families import Family, Labels
from windlass.observe.reading import Timing

PLAIN = "text/plain; version=0.0.4; charset=utf-8"
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"


def expose(families: Iterable[Family], accept: str = "") -> tuple[str, bytes]:
    """The content type that the Accept header asks for, and the text."""
    openmetrics = "application/openmetrics-text" in accept
    lines = [line for family in families for line in _family(family, openmetrics)]
    if openmetrics:
        lines.append("# EOF")
    return OPENMETRICS if openmetrics else PLAIN, ("\n".join(lines) + "\n").encode()


def _family(family: Family, openmetrics: bool) -> Iterator[str]:
    sample = f"{family.name}_total" if family.kind == "counter" else family.name
    head = family.name if openmetrics else sample
    yield f"# HELP {head} {family.help}"
    yield f"# TYPE {head} {family.kind}"
    for labels, value in family.values:
        yield f"{sample}{_braces(_pairs(family.labels, labels))} {value}"
    bounds = [*(f'le="{float(bound)!r}"' for bound in family.bounds), 'le="+Inf"']
    for labels, timing in family.timings:
        yield from _histogram(family.name, _pairs(family.labels, labels), bounds, timing)


def _histogram(name: str, labels: str, bounds: list[str], timing: Timing) -> Iterator[str]:
    begin, count = f"{name}_bucket{{{labels}{',' if labels else ''}", 0
    for bound, found in zip(bounds, timing.bins, strict=True):
        count += found
        yield f"{begin}{bound}}} {count}"
    yield f"{name}_count{_braces(labels)} {count}"
    yield f"{name}_sum{_braces(labels)} {timing.sum}"


def _pairs(names: Labels, values: Labels) -> str:
    return ",".join([f'{name}="{_escaped(value)}"' for name, value in zip(names, values, strict=True)])


def _braces(labels: str) -> str:
    return f"{{{labels}}}" if labels else ""


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
