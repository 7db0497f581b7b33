"""The parts that pages are made of: searches, trees, plots, findings, histories."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from windlass.core.graphs.tree import FlowEdge, FlowNode
from windlass.core.jobs.job import Attempt, Job
from windlass.core.search_text import Search, parse_search, search_text
from windlass.core.stats.meter import Meter, Recent
from windlass.core.status import Status
from windlass.server.api import job_list
from windlass.server.dashboard.figures.graph import graph_picture
from windlass.server.dashboard.figures.history import band, phases
from windlass.server.dashboard.figures.plots import Line, Window, bars, lines
from windlass.server.dashboard.figures.tree import MAX_CHILDREN, MAX_NODES, Node, tree_of
from windlass.server.dashboard.flows import make_row
from windlass.server.dashboard.render import clocks, make_templates, number, rate, span
from windlass.server.dashboard.troubles import State, troubles
from windlass.store.records import WorkerInfo

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "filters", "id_"),
    [
        ("", {}, ""),
        ("type:mail.welcome status:dead", {"type": "mail.welcome", "status": ["dead"]}, ""),
        ("status:dead,failed status:pending", {"status": ["dead", "failed", "pending"]}, ""),
        ("mail.welcome", {"type": "mail.welcome"}, ""),
        ("01A1e951-ad47", {}, "01a1e951-ad47"),
        ("id:beef tag:vip", {"tag": "vip"}, "beef"),
        ("facade", {"type": "facade"}, ""),
        ("shop:orders.pay", {}, ""),
    ],
)
def test_a_search_is_read_as_filters(text: str, filters: dict[str, Any], id_: str) -> None:
    found = parse_search(text)
    assert (found.filters, found.id) == (filters, id_)


@pytest.mark.parametrize(
    "text", ["colour:red", "status:no", "type:", "type:a type:b", "payload.:1", f"error:{'x' * 300}", "payload..a:1"]
)
def test_a_search_that_cannot_be_read_says_why(text: str) -> None:
    assert parse_search(text).problem.startswith(text.partition(":")[0])


def test_a_path_in_a_search_is_bounded() -> None:
    problem = parse_search(f"payload.list.{'9' * 5000}:1").problem
    assert problem.endswith("of at most 10 names and 200 characters")


@pytest.mark.parametrize(
    "text",
    [
        "status:dead type:a.b queue:q tenant:t tag:x",
        "status:dead,failed type:mail.* error:Timeout payload.user.id:42",
        'error:"connection reset by peer"',
    ],
)
def test_the_text_of_a_search_is_read_as_the_same_search(text: str) -> None:
    found = parse_search(text)
    assert found != Search({})
    assert parse_search(search_text(found)) == found


def test_a_tree_is_bounded_and_says_what_is_left_out() -> None:
    wide = tree_of(list(range(10_000)))
    assert (len(wide.children), wide.omitted) == (MAX_CHILDREN, 10_000 - MAX_CHILDREN)
    many = tree_of([[[0] * 100] * 100] * 100)
    assert _size(many) <= MAX_NODES + 3
    assert tree_of("x" * 65_536).text.endswith("(65,536 characters)")


def _size(node: Node) -> int:
    return 1 + sum(map(_size, node.children))


def test_a_plot_has_gaps_and_a_round_upper_edge() -> None:
    window = Window([NOW + timedelta(minutes=i) for i in range(4)], NOW + timedelta(minutes=4))
    made = lines("Wait", window, [Line("p50", [1.0, None, 3.0, 2.0], "p50")], span)
    assert made.shapes.count("M0 ") == 3  # the grid
    assert str(made.shapes).split('class="line p50" d="')[1].split('"')[0].count("M") == 2
    assert (made.top, made.half, made.legend, made.empty) == ("5s", "2.5s", (("p50", "p50", "2s"),), False)
    assert made.times == (NOW, NOW + timedelta(minutes=2), NOW + timedelta(minutes=4))
    stacked = bars(
        "Jobs", window, [Line("a", [10, 0, None, 3], "running"), Line("b", [7, 0, 0, 1], "pending")], number
    )
    assert stacked.top == "20"
    assert bars("None", window, [Line("a", [None] * 4, "running")], number).empty


def test_a_history_never_has_a_negative_length() -> None:
    before = NOW - timedelta(seconds=5)
    attempt = Attempt(attempt=1, outcome="failed", claimed_at=before, started_at=before, ended_at=NOW)
    job = _job(status=Status.FAILED, created_at=NOW, attempts=(attempt,))
    found = phases(job, NOW - timedelta(seconds=60))
    assert [(each.status, each.seconds) for each in found] == [("pending", 0.0), ("failed", 5.0), ("failed", 0.0)]
    assert band(found).count("<rect") == 1


def _job(**fields: Any) -> Job:
    plain = {"id": "x", "queue": "q", "type": "t", "payload": {}, "run_at": NOW, "updated_at": NOW}
    return Job(**{**plain, **fields})


def test_findings_are_worst_first() -> None:
    worker = WorkerInfo(id="w", host="h", pid=1, version="1", queues=("q",), types=("t",), processes=1, slots=1)
    silent = WorkerInfo(**{**_fields(worker), "beat_at": NOW - timedelta(minutes=5)})
    plain: dict[str, Any] = {"now": NOW, "queues": [], "oldest": {}, "schedules": []}
    assert troubles(State(workers=[], dead=0, **plain)) == []
    found = troubles(State(workers=[silent], dead=1, **plain))
    assert [each.level for each in found] == ["bad", "note"]
    assert "silent for 5m" in found[0].text


def test_a_type_that_fails_often_or_that_no_worker_knows_is_a_finding() -> None:
    worker = WorkerInfo(id="w", host="h", pid=1, version="1", queues=("q",), types=("t",), processes=1, slots=1)
    plain: dict[str, Any] = {"now": NOW, "queues": [], "oldest": {}, "schedules": [], "workers": [worker], "dead": 0}

    def found(completed: int, failed: int, parked: tuple[str, ...] = ()) -> list[str]:
        recent = Recent(
            0, (Meter(queue="q", type="t", completed=completed), Meter(queue="r", type="t", failed=failed))
        )
        return [each.text for each in troubles(State(recent=recent, parked_types=parked, **plain))]

    assert found(5, 5) == ["50% of 10 attempts of t failed in the last 5 minutes"]
    assert found(0, 4) == found(15, 5) == found(0, 0, ("t",)) == []
    assert found(0, 0, ("t", "u")) == ["No live worker knows type u; its jobs are set aside"]


def test_the_time_of_a_sentence_is_shown_in_the_zone_of_the_viewer() -> None:
    shown = clocks("It died at 03:00:07 UTC (5s ago). <b>09:00:00 UTC</b>", NOW)
    assert 'datetime="2026-01-02T03:00:07.000+00:00"' in shown
    assert shown.endswith("</time> (5s ago). &lt;b&gt;09:00:00 UTC&lt;/b&gt;"), "of the error nothing is changed"
    assert 'datetime="2025-12-31T23:00:00.000+00:00"' in clocks("Paused until 2025-12-31 23:00:00 UTC.", NOW)
    for odd in ("at 99:99:99 UTC", "on 2026-02-31 10:00:00 UTC", "٠٣:٠٠:٠٧ UTC"):
        assert clocks(odd, NOW) == odd
    assert clocks("No <i>time\u202e.", NOW) == "No &lt;i&gt;time\\u202e."


def _fields(worker: WorkerInfo) -> dict[str, Any]:
    return {name: getattr(worker, name) for name in worker.__struct_fields__}


def test_text_in_a_template_is_escaped_and_its_invisible_characters_are_shown() -> None:
    template = make_templates().from_string('<i title="{{ text }}">{{ text }}</i>')
    shown = template.render(text='<"\u202e\x00&>')
    assert shown == '<i title="&lt;&#34;\\u202e\\x00&amp;&gt;">&lt;&#34;\\u202e\\x00&amp;&gt;</i>'


@pytest.mark.parametrize(
    ("per_second", "text"), [(0, "0/s"), (0.5, "30.0/min"), (12.34, "12.3/s"), (1234.5, "1,234/s")]
)
def test_a_rate_has_the_unit_that_reads_best(per_second: float, text: str) -> None:
    assert rate(per_second) == text


def test_a_search_that_ended_at_an_id_without_a_time_names_no_moment() -> None:
    assert job_list._moment("0e70171f-ee42-8267-8437-74ec8c7000cf") is None
    moment = job_list._moment("01a1ecdc-7605-756a-87ee-27a4eee45489")
    assert moment is not None
    assert moment.year == 2026


def test_an_edge_that_passes_a_level_does_not_run_through_its_box() -> None:
    def node(name: str, *after: FlowEdge) -> FlowNode:
        return FlowNode(id=name, name=name, type=name, queue="q", status=Status.PENDING, after=after)

    first, second = node("a"), node("b", FlowEdge("a", "completed"))
    third = node("c", FlowEdge("b", "completed"), FlowEdge("a", "dead"))
    straight, drawn = graph_picture([first, second]), graph_picture([first, second, third])
    assert drawn.width > straight.width, "there is room for it beside the boxes"
    assert 'class="edge dead" d="M166 38C226 38 226 206 166 206"' in drawn.svg
    assert 'class="edge completed" d="M91 60C91 80 91 80 91 100"' in drawn.svg


def test_a_job_of_a_flow_waited_for_what_it_depends_on() -> None:
    due, end = NOW + timedelta(seconds=9), NOW + timedelta(seconds=11)
    ran = Attempt(attempt=1, outcome="completed", claimed_at=due, started_at=due, ended_at=end)
    job = _job(status=Status.COMPLETED, created_at=NOW, flow="f", run_at=due, attempts=(ran,), finished_at=end)
    first = phases(job, end)[0]
    assert (first.status, first.text) == ("blocked", "waited for what it depends on")


def test_the_reason_of_a_node_names_other_nodes() -> None:
    reason = "its parent a1 is dead"
    node = FlowNode(name="ship", id="b2", type="t", queue="q", status=Status.CANCELLED, reason=reason)
    assert make_row(node, {"a1": "charge"}).reason == "its parent charge is dead"
    assert make_row(node, {}).reason == reason
