"""Format figures, for the terminal, the documents and the charts."""

from bench.report.figures import Row
from windlass.cli.bench import number as number


def ours(row: Row) -> str:
    """The figure with its unit."""
    return f"{number(row.value)} {row.unit}"


def against(row: Row) -> str:
    """The base with its unit."""
    if row.base is None:
        return ""
    if row.base_value is None:
        return f"{row.base.name}: {row.base.skip_reason or 'not run'}"
    return f"{row.base.name}: {number(row.base_value)} {row.unit}"


def ratio(row: Row) -> str:
    """The ratio."""
    return "" if row.ratio is None else f"{row.ratio:.2f}×"


def target(row: Row) -> str:
    """The target."""
    if row.target is None:
        return ""
    unit = "×" if row.base is not None else f" {row.unit}"
    return f"{'≥' if row.target.at_least else '≤'} {row.target.bound:g}{unit}"


def verdict(row: Row) -> str:
    """Met, missed, or not run; nothing where there is no target."""
    if row.target is None:
        return ""
    return {True: "met", False: "MISSED", None: "not run"}[row.met]


def spread(row: Row) -> str:
    """The minimum and maximum of the rounds, if there are several."""
    return f"{number(min(row.rounds))} … {number(max(row.rounds))}" if len(row.rounds) > 1 else ""
