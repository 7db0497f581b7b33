"""One frame: a snapshot as text of a given width and height. Pure."""

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from windlass.cli.output.figures import ago, amount, bars, rate, span, spark
from windlass.cli.output.tables import STYLES, plain
from windlass.cli.top.section import Column, Section, shares
from windlass.cli.top.snapshot import FailureLine, QueueLine, Snapshot, TypeLine
from windlass.core.status import Status
from windlass.observe.alerts import Alert
from windlass.store.records import WorkerInfo

ALWAYS = (Status.PENDING, Status.RUNNING, Status.FAILED, Status.DEAD)
WIDE = 120
MAX_ALERTS = 3
_FOOT = 2  # with a blank line before it


def frame(snapshot: Snapshot, width: int, height: int | None, foot: Text | None = None) -> Group:
    """All of it; without a height every line is shown."""
    parts = {
        "queues": queues(snapshot.queues, width),
        "types": types(snapshot.types, width),
        "workers": workers(snapshot.workers, snapshot),
        "failures": failures(snapshot.failures, snapshot),
    }
    lines: list[RenderableType] = head(snapshot, width)
    free = None if height is None else height - len(lines) - _FOOT
    for name in ("types", "workers", "failures"):
        if free is not None and _room(free, len(parts)) < len(parts):
            del parts[name]
    wanted = [part.wanted for part in parts.values()]
    room = sum(wanted) if free is None else _room(free, len(parts))
    for part, rows in zip(parts.values(), shares(wanted, room), strict=True):
        lines += [Text(""), part.fitted(width, rows)]
    if foot is not None:
        lines += [Text("\n" * max(0, room - sum(wanted))), foot]
    return Group(*lines)


def _room(free: int, parts: int) -> int:
    """The rows left for this many tables, each with a blank line and a heading."""
    return free - 2 * parts


def head(snapshot: Snapshot, width: int) -> list[RenderableType]:
    """The store, the time, totals, rates and workers, line by line."""
    title = Text.assemble(("windlass top", "bold"), "  ", plain(snapshot.store))
    slots = sum(worker.slots for worker in snapshot.workers)
    busy = sum(worker.busy for worker in snapshot.workers)
    count = len(snapshot.workers)
    busy_slots = f"{busy} of {slots} slots busy" + (f" ({busy / slots:.0%})" if slots else "")
    workers = f"{count} worker{'' if count == 1 else 's'}, {busy_slots}" if count else "no workers"
    pace = f"{rate(snapshot.per_second)} done/s"
    lately = spark(snapshot.completed, width - len(pace) - len(workers) - 4).lstrip()
    return [
        _sides(title, Text(f"{snapshot.at:%Y-%m-%d %H:%M:%S} UTC", "dim")),
        *_totals(snapshot.totals, width),
        _sides(Text.assemble((pace, "bold"), "  ", (lately, "green")), Text(workers, "" if count else "yellow")),
        *_alerts(snapshot.alerts),
    ]


def _alerts(alerts: Sequence[Alert]) -> list[Text]:
    """The first few that would fire, and how many more."""
    lines = [
        Text.assemble((each.name, "bold red"), "  ", plain(each.says), no_wrap=True, overflow="ellipsis")
        for each in alerts[:MAX_ALERTS]
    ]
    more = len(alerts) - MAX_ALERTS
    return [*lines, Text(f"and {more} more alerts", "red")] if more > 0 else lines


def _sides(left: Text, right: Text) -> Table:
    table = Table.grid(expand=True, padding=(0, 0, 0, 2), pad_edge=False)
    table.add_column(ratio=1, no_wrap=True, overflow="ellipsis")
    table.add_column(justify="right", no_wrap=True)
    table.add_row(left, right)
    return table


def _totals(totals: dict[str, int], width: int) -> list[Text]:
    """The totals on as many lines as they need: a count that is cut off would be wrong."""
    lines = [Text(no_wrap=True, overflow="ellipsis")]
    for status in Status:
        if not totals[status] and status not in ALWAYS:
            continue
        count = Text.assemble((f"{status} ", STYLES[status]), (f"{totals[status]:,}", _weight(totals[status])))
        if lines[-1] and len(lines[-1]) + 3 + len(count) > width:
            lines.append(Text(no_wrap=True, overflow="ellipsis"))
        lines[-1].append("   " if lines[-1] else "").append_text(count)
    return lines


def _weight(jobs: int) -> str:
    return "bold" if jobs else "dim"


def queues(lines: Sequence[QueueLine], width: int) -> Section:
    """Queues with their jobs; jobs waiting for a key have a column if there are any."""
    blocked = any(line.jobs["blocked"] for line in lines)
    columns = (
        Column("queue", right=False),
        *([Column("blocked")] if blocked else []),
        Column("pending"),
        Column("running"),
        Column("scheduled", 6),
        Column("failed", 1),
        Column("dead"),
        Column("done/s"),
        Column("wait p50", 5),
        Column("wait p95"),
        Column("run p50", 5),
        Column("run p95", 2),
        Column("oldest", 3),
        Column("last minutes", 7, right=False),
        Column("last hour", 8, right=False),
    )
    return Section(
        columns=columns,
        rows=[_queue_row(line, _bars(width), blocked=blocked) for line in lines],
        busy=[line.rates.per_second * 1e6 + line.jobs["pending"] + line.jobs["running"] for line in lines],
        empty="No queues yet.",
    )


def _queue_row(line: QueueLine, steps: int, *, blocked: bool) -> list[Text]:
    name = plain(line.queue)
    if line.paused:
        name.append(" (paused)", "yellow")
    if line.closed:
        name.append(" (closed)", "yellow")
    shown = [*(["blocked"] if blocked else []), "pending", "running", "scheduled", "failed", "dead"]
    counted = [_count(line.jobs[status], status) for status in shown]
    return [
        name,
        *counted,
        Text(rate(line.rates.per_second)),
        *map(
            _time,
            (
                line.rates.wait.p50,
                line.rates.wait.p95,
                line.rates.run.p50,
                line.rates.run.p95,
            ),
        ),
        _time(line.oldest),
        Text(spark(line.completed, steps), "green"),
        Text(bars(line.hour), "green"),
    ]


def types(lines: Sequence[TypeLine], width: int) -> Section:
    """Types that ran recently."""
    columns = (
        Column("type", right=False),
        Column("done/s"),
        Column("failures"),
        Column("wait p95", 2),
        Column("run p50"),
        Column("run p95"),
        Column("run p99", 1),
        Column("last minutes", 3, right=False),
    )
    return Section(
        columns=columns,
        rows=[
            [
                plain(line.type),
                Text(rate(line.rates.per_second)),
                _count(line.rates.failures, "failed"),
                *map(
                    _time,
                    (
                        line.rates.wait.p95,
                        line.rates.run.p50,
                        line.rates.run.p95,
                        line.rates.run.p99,
                    ),
                ),
                Text(spark(line.completed, _bars(width)), "green"),
            ]
            for line in lines
        ],
        busy=[line.rates.completed + line.rates.failures for line in lines],
        empty="Nothing ran in the last ten minutes.",
    )


def workers(lines: Sequence[WorkerInfo], snapshot: Snapshot) -> Section:
    """The workers."""
    columns = (
        Column("worker", right=False),
        Column("pid", 2),
        Column("busy"),
        Column("per minute", 1),
        Column("last beat"),
        Column("queues", 3, right=False),
    )
    rows = []
    for line in lines:
        name = plain(line.host)
        if line.draining:
            name.append(" (stopping)", "yellow")
        beat = None if line.beat_at is None else (snapshot.at - line.beat_at).total_seconds()
        served = plain(", ".join(line.queues))
        said = (str(line.pid), f"{line.busy} of {line.slots}", f"{line.per_minute:.0f}", ago(beat))
        rows.append([name, *map(Text, said), served])
    empty = "No workers: jobs wait until one is started (windlass worker APP)."
    return Section(columns=columns, rows=rows, busy=[float(line.busy) for line in lines], empty=empty, grows=True)


def failures(lines: Sequence[FailureLine], snapshot: Snapshot) -> Section:
    """The latest failures."""
    columns = (
        Column("failure", right=False),
        Column("status", 2, right=False),
        Column("when", 1),
        Column("job", right=False),
        Column("error", right=False),
    )
    rows = [
        [
            plain(line.type),
            Text(line.status, STYLES[line.status]),
            Text(ago((snapshot.at - line.at).total_seconds()), "dim"),
            Text(line.id),
            plain(line.error),
        ]
        for line in lines
    ]
    empty = "No failed or dead jobs."
    newest_first = [-float(number) for number in range(len(lines))]
    return Section(columns=columns, rows=rows, busy=newest_first, empty=empty, grows=True, endless=True)


def _bars(width: int) -> int:
    return 30 if width >= WIDE else 12


def _count(jobs: int, status: str) -> Text:
    return Text(amount(jobs), STYLES[status] if jobs else "dim")


def _time(seconds: float | None) -> Text:
    return Text(span(seconds), "dim" if seconds is None else "")
