"""What a soak found, as text: one line for each series, and one for the jobs of each store."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tools.soak.ledger import Account
from tools.soak.sampling import read
from tools.soak.verdict import Judged, Point, after_warm_up, judge

BARS = "▁▂▃▄▅▆▇█"
WIDTH = 24


def table(series: Mapping[str, Sequence[Point]]) -> tuple[list[str], list[Judged]]:
    """Lines, and the verdicts behind them."""
    judged = [judge(name, points) for name, points in sorted(series.items())]
    head = f"{'series':<40}{'first':>10}{'last':>10}{'per hour':>11}  {'verdict':<16}after warm-up"
    return [head, *(_line(each, series[each.series]) for each in judged)], judged


def _line(each: Judged, points: Sequence[Point]) -> str:
    figures = f"{each.first:>10.1f}{each.last:>10.1f}{each.slope:>+11.2f}"
    return f"{each.series:<40}{figures}  {each.verdict:<16}{spark([value for _, value in after_warm_up(points)])}"


def spark(values: Sequence[float]) -> str:
    """A series in one line, from its smallest to its largest value."""
    if not values:
        return ""
    low, high = min(values), max(values)
    size = max(1, len(values) // WIDTH)
    means = [sum(part) / len(part) for part in (values[i : i + size] for i in range(0, len(values), size))]
    return "".join(BARS[int((mean - low) / ((high - low) or 1) * (len(BARS) - 1))] for mean in means)


def jobs(store: str, found: Account) -> str:
    """The account of one store."""
    return (
        f"{store}: {found.accepted} jobs accepted, {len(found.lost)} lost; {found.attempts} attempts, {found.ticks} "
        f"scheduled; {found.killed} jobs ran again after a kill, {len(found.again)} without a reason"
        + "".join(f"\n  lost: {id_}" for id_ in found.lost[:10])
        + "".join(f"\n  ran again: {id_}" for id_ in found.again[:10])
    )


if __name__ == "__main__":
    import sys

    print("\n".join(table(read(Path(sys.argv[1])))[0]))
