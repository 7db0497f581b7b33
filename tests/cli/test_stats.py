"""windlass stats --since: how it went, as a table with bars that fit, and as JSON."""

import asyncio
import shutil
import time
from pathlib import Path

import pytest
from msgspec.structs import replace
from rich.console import Console

from tests.cli.terminal import Terminal
from tests.support.clock import ManualClock
from tests.support.seed import enqueue
from windlass.cli.output.figures import bars
from windlass.cli.stats import OTHERS, print_timeline
from windlass.core.moments import SECOND, to_datetime
from windlass.core.stats.meter import Meter, histogram
from windlass.core.stats.recent_stats import Quantiles
from windlass.core.stats.samples import HOUR, MINUTE
from windlass.core.stats.timeline import Point, Series, Timeline
from windlass.store.open import open_store

PAIRS = (("mail", "welcome"), ("mail", "bye"), ("default", "welcome"))


async def _go(path: Path, minutes: int) -> None:
    """So many minutes until now, in the middle third of which nothing was sampled."""
    clock = ManualClock()
    clock.jump_wall(time.time_ns() // 1000 - clock.wall() - minutes * MINUTE)
    store = open_store(f"sqlite:///{path}?durability=relaxed", clock=clock)
    for minute in range(minutes):
        if minute == 1:
            await enqueue(store, 7, queue="mail")
        if not minutes // 3 <= minute < minutes // 3 * 2:
            times = histogram([SECOND] * 98 + [60 * SECOND] * 2)
            alike = Meter(queue="", type="", completed=10, dead=1, wait=times, run=times)
            await store.stats.record([replace(alike, queue=queue, type=type_) for queue, type_ in PAIRS])
            await store.stats.sample()
        clock.advance(MINUTE)
    while not (await store.stats.sample()).next_in:
        pass
    await store.close()


@pytest.fixture(scope="module")
def day(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("day") / "windlass.db"
    asyncio.run(_go(path, 360))
    return path


@pytest.fixture
def gone(terminal: Terminal, day: Path) -> Terminal:
    """Six hours have passed here."""
    for path in day.parent.glob("windlass.db*"):
        shutil.copy(path, terminal.folder / path.name)
    return terminal


def rows(out: str) -> dict[str, str]:
    return {line.split()[0]: line for line in out.splitlines()[1:-1]}


def test_a_timeline_has_a_line_for_each_queue_and_one_for_all(gone: Terminal) -> None:
    heading, *_, foot = (out := gone.ok("stats", "--since", "6h").out).splitlines()
    assert heading.split()[:4] == ["queue", "done", "failures", "done/s"]
    found = rows(out)
    assert list(found) == ["default", "mail", "all"]
    cells = found["mail"].split()
    assert cells[4:11] == ["1.0s", "1.0s", "61s", "1.0s", "1.0s", "61s", "7"]
    assert foot.endswith(" UTC; a bar is 9m, a blank a gap")


def test_what_was_not_sampled_is_a_blank_between_bars(gone: Terminal) -> None:
    line = rows(gone.ok("stats", "--since", "6h").out)["mail"]
    before, gap, after = (timeline := line[-40:]).rstrip().partition("   ")
    assert set(before) <= set("▇█▆"), timeline
    assert gap
    assert set(after.strip()) <= set("▁▂▃▄▅▆▇█"), timeline


@pytest.mark.parametrize("width", [60, 80, 100, 120, 150, 200])
@pytest.mark.parametrize("by", ["queue", "type"])
def test_a_timeline_fits_its_terminal(gone: Terminal, monkeypatch: pytest.MonkeyPatch, width: int, by: str) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    lines = gone.ok("stats", "--since", "6h", "--by", by).out.splitlines()
    assert max(map(len, lines)) <= width
    assert lines[0].startswith(by)
    assert any("█" in line for line in lines)


def test_types_and_only_one_of_them(gone: Terminal) -> None:
    assert list(rows(gone.ok("stats", "--since", "6h", "--by", "type").out)) == ["bye", "welcome", "all"]
    assert list(rows(gone.ok("stats", "--since", "6h", "--type", "bye").out)) == ["bye"]
    assert list(rows(gone.ok("stats", "--since", "6h", "--queue", "mail").out)) == ["mail"]
    assert list(rows(gone.ok("stats", "--since", "6h", "--queue", "default", "--by", "type").out)) == ["welcome"]
    none_ran = gone.ok("stats", "--since", "6h", "--type", "none_ran").out
    assert none_ran.startswith("Nothing ran in the last 6h, up to the last sample;")


def test_a_program_gets_every_point_and_the_counts(gone: Terminal) -> None:
    found = gone.ok("stats", "--since", "6h", "--json").json
    assert found["queues"]["mail"]["pending"] == found["totals"]["pending"] == 7
    timeline = found["timeline"]
    assert (timeline["by"], timeline["seconds"], len(timeline["all"]["points"])) == ("queue", 60, 360)
    mail = timeline["series"]["mail"]
    assert None in mail["points"]
    assert sum(point["completed"] for point in mail["points"] if point) == mail["whole"]["completed"]
    assert mail["whole"]["max_jobs"] == {"pending": 7}
    hours = gone.ok("stats", "--since", "7d", "--json").json["timeline"]
    assert (hours["seconds"], len(hours["all"]["points"])) == (3600, 168)


def test_bars_are_plain_where_there_is_no_unicode(gone: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Console, "encoding", "ascii")
    out = gone.ok("stats", "--since", "6h").out
    assert out.isascii()
    assert "#" in rows(out)["mail"]


def test_nothing_sampled_is_said_with_the_process_that_samples(terminal: Terminal) -> None:
    said = "Nothing was sampled in the last 7d: any worker that runs does so, each minute.\n"
    assert terminal.ok("stats", "--since", "7d").out == said


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--since", "401d"], "error: --since: must be more than 0s and at most 400d, not 401d"),
        (["--since", "0s"], "error: --since: must be more than 0s and at most 400d, not 0s"),
        (["--since", "soon"], "error: --since: 'soon' is not a duration such as"),
        (["--by", "type"], "error: --by: needs --since, such as --since 6h"),
        (["--queue", "q"], "error: --queue: needs --since"),
        (["--type", "t"], "error: --type: needs --since"),
        (["--since", "6h", "--queue", "a b"], "error: queue: 'a b' is not 1 to 128 of the characters"),
    ],
)
def test_what_cannot_be_asked_is_refused(terminal: Terminal, words: list[str], problem: str) -> None:
    ran = terminal.run("stats", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(problem)


def test_what_has_no_name_is_called_the_others(capsys: pytest.CaptureFixture[str]) -> None:
    at = to_datetime(HOUR)
    times = Quantiles()
    point = Point(at=at, completed=5, failures=0, per_second=1, wait=times, run=times)
    line = Series(whole=point, points=(point,))
    lines = {"": line, "t": line}
    timeline = Timeline(since=at, until=to_datetime(2 * HOUR), seconds=60, by="type", series=lines, all=line)
    print_timeline(timeline, "1h", Console(width=100))
    names = [each.split()[0] for each in capsys.readouterr().out.splitlines()]
    assert names[:4] == ["type", OTHERS, "t", "all"]
    print_timeline(replace(timeline, series={}), "1h", Console(width=100))
    assert capsys.readouterr().out.startswith("Nothing ran in the last 1h, up to the last sample")


def test_a_bar_is_as_high_as_its_share_and_a_gap_has_none() -> None:
    assert bars([0, 1, None, 1000, 500]) == "▁▂ █▅"
    assert bars([0, 1, None, 1000, 500], plain=True) == "_. #="
    assert (bars([]), bars([None, 0])) == ("", " ▁")


@pytest.fixture
def loaded(terminal: Terminal) -> Terminal:
    """Seven pending jobs in one queue, and two in another that is paused."""
    for queue, jobs in (("mail", 7), ("images", 2)):
        for _ in range(jobs):
            terminal.ok("enqueue", "t", "--queue", queue)
    terminal.ok("queues", "pause", "images")
    return terminal


def test_scale_prints_one_number_and_with_json_its_parts(loaded: Terminal) -> None:
    assert loaded.run("scale").out == "7\n"
    assert loaded.run("scale", "--queues", "images").out == "0\n"
    assert loaded.run("scale", "--queues", "mail,images", "--json").json == {
        "value": 7,
        "queues": {
            "mail": {"pending": 7, "running": 0, "paused": False},
            "images": {"pending": 2, "running": 0, "paused": True},
        },
    }


def test_scale_refuses_a_queue_that_cannot_be(loaded: Terminal) -> None:
    refused = loaded.run("scale", "--queues", "mail,,x")
    assert (refused.code, "--queues" in refused.err) == (2, True)
