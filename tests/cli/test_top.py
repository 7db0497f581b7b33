"""windlass top: a snapshot becomes a frame that fits, whatever there is to show and however small the terminal is."""

import io
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from rich.console import Console
from rich.text import Text

from tests.cli.terminal import Terminal
from tests.cli.test_terminal_safety import EVIL, OBEYED, poison
from tests.support.seed import worker_info
from windlass import App
from windlass.cli.output.figures import ago, amount, rate, span, spark
from windlass.cli.top.frame import frame
from windlass.cli.top.live import watch
from windlass.cli.top.section import shares
from windlass.cli.top.snapshot import FailureLine, QueueLine, Snapshot, TypeLine, gather
from windlass.core.stats.recent_stats import Quantiles, RecentStats
from windlass.core.status import Status
from windlass.errors import StoreUnavailable
from windlass.observe.alerts import Alert

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
ID = "0198c000-0000-7000-8000-000000000000"
RATES = RecentStats(
    per_second=12.5, completed=100, failures=3, wait=Quantiles(0.001, 0.2, 3), run=Quantiles(0.04, 5, 66)
)
COMPLETED = [0] * 50 + list(range(10))
HOUR = [None] * 27 + [0, 1, 2]


def queue(name: str = "default", **fields: Any) -> QueueLine:
    given = {
        "paused": False,
        "jobs": jobs(pending=7),
        "oldest": 61.0,
        "rates": RATES,
        "completed": COMPLETED,
        "hour": HOUR,
    }
    return QueueLine(queue=name, **{**given, **fields})


def type_(name: str = "mail.welcome", **fields: Any) -> TypeLine:
    return TypeLine(type=name, **{"rates": RATES, "completed": COMPLETED, **fields})


def failure(type_: str = "crm.sync", error: str = "ValueError: no such customer") -> FailureLine:
    at = NOW - timedelta(minutes=3)
    return FailureLine(id=ID, type=type_, queue="default", status=Status.DEAD, attempt=3, at=at, error=error)


def jobs(**counted: int) -> dict[str, int]:
    return dict.fromkeys(map(str, Status), 0) | counted


def snapshot(**fields: Any) -> Snapshot:
    worker = worker_info(host="box", pid=4711, running=3, per_minute=750, beat_at=NOW - timedelta(seconds=4))
    whole = Snapshot(
        store="sqlite:///jobs.db",
        at=NOW,
        totals=jobs(pending=7, completed=1_234_567),
        per_second=12.5,
        completed=COMPLETED,
        interval_seconds=10,
        queues=[queue()],
        types=[type_()],
        workers=[worker],
        failures=[failure()],
    )
    return msgspec.structs.replace(whole, **fields)


def drawn(shown: Snapshot, width: int = 200, height: int | None = None) -> list[str]:
    out = Console(width=width, height=height or 100, color_system=None)
    with out.capture() as captured:
        out.print(frame(shown, width, height, Text("the foot") if height else None))
    return [line.rstrip() for line in captured.get().splitlines()]


BUSY = snapshot(
    queues=[queue(f"queue.{number:02}") for number in range(30)],
    types=[type_(f"package.module.function_{number}") for number in range(30)],
    workers=[worker_info(f"w{number}", host=f"host-{number}.example.net", beat_at=NOW) for number in range(30)],
    failures=[failure(error="it went wrong again " * 20)] * 20,
)


@pytest.mark.parametrize("shown", [snapshot(), BUSY], ids=["a few", "many"])
@pytest.mark.parametrize("size", [(80, 24), (100, 30), (60, 16), (132, 50), (250, 90), (80, 12)], ids=str)
def test_a_frame_is_just_as_wide_and_high_as_its_terminal(shown: Snapshot, size: tuple[int, int]) -> None:
    width, height = size
    lines = drawn(shown, width, height)
    assert len(lines) == height
    assert max(map(len, lines)) <= width
    assert lines[-1] == "the foot"
    assert lines[0].startswith("windlass top  sqlite:///jobs.db")


@pytest.mark.parametrize("width", [80, 200])
def test_what_matters_most_is_there_at_any_width(width: int) -> None:
    text = "\n".join(drawn(snapshot(), width))
    for word in ("pending 7", "completed 1,234,567", "12.5 done/s", "1 worker, 3 of 10 slots busy", "default"):
        assert word in text
    assert ID in text, "an id that is cut off is of no use"
    assert "ValueError: no such" in text
    assert "2026-01-02 03:04:05 UTC" in text


@pytest.mark.parametrize("height", [None, 24])
def test_no_count_is_cut_off_at_80_columns(height: int | None) -> None:
    lines = drawn(snapshot(totals={str(status): 12_345 for status in Status}), 80, height)
    for status in Status:
        assert f"{status} 12,345" in "\n".join(lines)
    assert height is None or len(lines) == height


def test_what_is_shown_though_there_is_none_of_it_is_what_people_look_for() -> None:
    assert drawn(snapshot(totals=jobs()), 80)[1] == "pending 0   running 0   failed 0   dead 0"


def test_a_wide_terminal_shows_every_figure() -> None:
    lines = drawn(snapshot())
    heading = next(number for number, line in enumerate(lines) if line.startswith("queue"))
    columns = [*("queue", "pending", "running", "scheduled", "failed", "dead", "done/s"), "wait p50", "wait p95"]
    assert [word.strip() for word in lines[heading].split("  ") if word] == [
        *columns,
        "run p50",
        "run p95",
        "oldest",
        "last minutes",
        "last hour",
    ]
    cells = lines[heading + 1].split()
    assert cells[:-2] == [*("default", "7", "0", "0", "0", "0", "12.5", "1.0ms", "200ms", "40ms", "5.0s", "61s")]
    assert (cells[-2][-9:], cells[-1]) == ("▂▃▃▄▅▆▆▇█", "▁▅█"), "what was not sampled is blank"
    assert "mail.welcome    12.5         3     200ms     40ms     5.0s      66s" in "\n".join(lines)
    assert "box     4711  3 of 10         750     4s ago  default" in "\n".join(lines)


def test_what_waits_for_a_key_is_shown_by_queue_where_there_is_any() -> None:
    lines = drawn(snapshot(queues=[queue("mail", jobs=jobs(blocked=58)), queue("other")]), 80)
    heading = next(number for number, line in enumerate(lines) if line.startswith("queue"))
    assert lines[heading].split()[:3] == ["queue", "blocked", "pending"]
    assert lines[heading + 1].split()[:2] == ["mail", "58"]


def test_where_there_is_no_room_the_busiest_are_shown_in_their_own_order() -> None:
    lines = [queue(f"q{number}", rates=RecentStats(per_second=number % 7)) for number in range(20)]
    found = drawn(snapshot(queues=lines), 80, 24)
    names = [line.split()[0] for line in found if line.startswith("q")]
    assert found[4].startswith("queue (+12)")
    assert names[1:] == ["q4", "q5", "q6", "q11", "q12", "q13", "q18", "q19"]


def test_a_paused_queue_and_a_stopping_worker_are_marked() -> None:
    stopping = worker_info(host="box", draining=True, beat_at=NOW)
    text = "\n".join(drawn(snapshot(queues=[queue(paused=True)], workers=[stopping])))
    assert "default (paused)" in text
    assert "default (closed)" in "\n".join(drawn(snapshot(queues=[queue(closed=True)])))
    assert "box (stopping)" in text


def test_what_is_claimed_ahead_takes_no_slot() -> None:
    ahead = worker_info(host="box", running=14, slots=10, beat_at=NOW)
    text = "\n".join(drawn(snapshot(workers=[ahead])))
    assert "1 worker, 10 of 10 slots busy" in text
    assert "14 of" not in text


def test_nothing_to_show_is_said_in_sentences() -> None:
    lines = drawn(snapshot(queues=[], types=[], workers=[], failures=[], completed=[0] * 60), 80, 24)
    for sentence in ("No queues yet.", "Nothing ran in the last ten minutes.", "No failed or dead jobs."):
        assert sentence in lines
    assert "No workers: jobs wait until one is started (windlass worker APP)." in lines
    assert lines[2].endswith("no workers")


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        *(
            (None, "-"),
            (0, "0ms"),
            (0.0004, "0.4ms"),
            (0.0421, "42ms"),
            (0.9996, "1.0s"),
            (4.24, "4.2s"),
            (42, "42s"),
        ),
        *((600, "10m"), (7200, "2h"), (3 * 86_400, "3d")),
    ],
)
def test_a_time_is_short(seconds: float | None, text: str) -> None:
    assert span(seconds) == text


@pytest.mark.parametrize(
    ("per_second", "text"), [(0, "0"), (0.02, "0.02"), (4.24, "4.2"), (420.4, "420"), (12_345, "12.3k")]
)
def test_a_rate_is_short(per_second: float, text: str) -> None:
    assert rate(per_second) == text


@pytest.mark.parametrize(
    ("number", "text"), [(0, "0"), (9999, "9999"), (12_345, "12.3k"), (999_999, "1.0M"), (1_234_567, "1.2M")]
)
def test_an_amount_is_short(number: int, text: str) -> None:
    assert amount(number) == text


def test_a_moment_ago_is_now() -> None:
    assert [ago(None), ago(-3), ago(0.4), ago(4.7), ago(200)] == ["-", "now", "now", "4s ago", "3m ago"]


def test_a_spark_shows_a_single_job_beside_many_and_none_as_none() -> None:
    assert spark([1, 0, 1000, 500], 4) == "▂▁█▅"
    assert spark([1000, 1, 2], 2) == "▅█", "measured by what is shown"
    assert spark([0, 0, 3, 0], 4) == "  █▁", "and blank before the first"
    assert spark([], 5) == spark([1], 0) == ""


def test_rows_are_shared_out_in_turn() -> None:
    assert shares([5, 1, 9], 9) == [4, 1, 4]
    assert shares([5, 1, 9], 100) == [5, 1, 9]
    assert shares([5, 1], 0) == [0, 0]


def test_a_frame_prints_nothing_that_a_terminal_obeys(terminal: Terminal) -> None:
    id_ = terminal.enqueue("t", "{}", "--max-attempts", "1")
    terminal.with_app(poison)
    for words in (["--once"], ["--json"]):
        out = terminal.ok("top", *words).out
        assert id_ in out
        assert OBEYED & set(out) == set()
    failures = terminal.ok("top", "--json").json["failures"]
    assert [each["error"] for each in failures] == [" ".join(f"shop.{EVIL}: {EVIL}".split())]


def test_a_store_that_goes_away_is_waited_for_and_said_to_be_away() -> None:
    later = snapshot(store="sqlite:///it-is-back.db")
    found_then: list[Snapshot | BaseException] = [snapshot(), StoreUnavailable("jobs.db is busy"), later]
    looks = iter([*found_then, KeyboardInterrupt()])

    def look() -> Snapshot:
        found = next(looks)
        if isinstance(found, BaseException):
            raise found
        return found

    drawn_on = io.StringIO()
    watch(look, Console(file=drawn_on, width=100, height=30, force_terminal=True), 0.001)
    away, back = (
        drawn_on.getvalue().find(words) for words in ("jobs.db is busy; shown as of 03:04:05", "it-is-back")
    )
    assert 0 < away < back


@pytest.mark.parametrize("interval", ["0s", "99ms", "soon"])
def test_an_interval_that_cannot_be_is_refused(terminal: Terminal, interval: str) -> None:
    ran = terminal.run("top", "--interval", interval)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("error: --interval")


def test_a_store_that_is_not_there_is_not_made_by_looking(terminal: Terminal) -> None:
    ran = terminal.run("top", "--store", "sqlite:///nowhere.db")
    assert ran.code == 2
    assert f"there is no store: no such file: {terminal.folder}/nowhere.db" in ran.err
    assert not (terminal.folder / "nowhere.db").exists()


def test_utilisation_the_oldest_waiting_job_and_alerts_are_shown() -> None:
    alerts = [Alert("WindlassQueueWaits", f"the oldest job of q{number} has waited 6m") for number in range(5)]
    lines = drawn(snapshot(alerts=alerts))
    assert any("1 worker, 3 of 10 slots busy (30%)" in line for line in lines)
    heading = next(number for number, line in enumerate(lines) if line.startswith("queue"))
    at = lines[heading].index("oldest") + len("oldest")
    assert lines[heading + 1][:at].endswith(" 61s")
    named = [line for line in lines if line.startswith("Windlass")]
    assert named == [f"{each.name}  {each.says}" for each in alerts[:3]]
    assert "and 2 more alerts" in lines


def test_alerts_are_found_in_the_store() -> None:
    app = App.testing()

    @app.task(type="t")
    def work() -> None: ...

    work.enqueue()
    assert [each.name for each in gather(app).alerts] == ["WindlassNoWorkers", "WindlassNoCoordinator"]
    app.clock.advance(seconds=301)
    names = {each.name for each in gather(app).alerts}
    assert names == {"WindlassQueueWaits", "WindlassNoWorkers", "WindlassNoCoordinator"}
    app.queues.pause("default")
    assert gather(app).alerts == []
