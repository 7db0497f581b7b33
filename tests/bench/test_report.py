"""What is written down, and what stays when something newer is."""

from pathlib import Path
from xml.etree import ElementTree

from bench.report.figures import Bars, Base, Listing, Row, Section, Target
from bench.report.machine import describe_machine
from bench.report.results import Report, SectionResult, page, read, write


def _result(name: str, value: float) -> SectionResult:
    rows = [
        Row(name="ours", unit="jobs/s", rounds=[value], base=Base("bare", [100.0]), target=Target(0.4)),
        Row(name="ours", unit="jobs/s", rounds=[value], base=Base("Huey", skip_reason="not run: not installed")),
    ]
    section = Section(
        name=name,
        title=f"What {name} takes",
        rows=rows,
        charts=[Bars("Rates", "jobs/s", [("ours", value)], 1)],
        listings=[Listing("By function", "µs/job", [("run|async", 2.5)])],
        notes=["A note."],
    )
    return SectionResult(section, describe_machine({"store": "SQLite", "SQLite": "3.53.0"}), "0.1.0", 1)


def test_a_report_can_be_read_back(tmp_path: Path) -> None:
    report = Report([_result("drain", 50.0), _result("enqueue", 10.0)])
    write(report, tmp_path / "new" / "folder")
    assert read(tmp_path / "new" / "folder") == report


def test_every_chart_is_written_and_shown(tmp_path: Path) -> None:
    write(Report([_result("drain", 50.0)]), tmp_path)
    ElementTree.parse(tmp_path / "sqlite-drain-1.svg")
    assert "![Rates](sqlite-drain-1.svg)" in (tmp_path / "README.md").read_text()


def test_a_page_says_what_was_missed_what_was_not_run_and_where() -> None:
    text = page(Report([_result("drain", 10.0)]))
    assert "| ours | 10.0 jobs/s |  | bare: 100 jobs/s | 0.10× | ≥ 0.4× | **MISSED** |" in text
    assert "Huey: not run: not installed" in text
    assert "SQLite 3.53.0" in text
    assert "Load before the start:" in text
    assert "run\\|async" in text


def test_what_is_published_stays_until_it_is_measured_again() -> None:
    old = Report([_result("drain", 1.0), _result("growth", 2.0)])
    merged = old.merged(Report([_result("drain", 3.0), _result("memory", 4.0)]))
    assert [(each.section.name, each.section.rows[0].value) for each in merged.results] == [
        ("drain", 3.0),
        ("growth", 2.0),
        ("memory", 4.0),
    ]


def test_where_nothing_was_written_there_is_an_empty_report(tmp_path: Path) -> None:
    assert read(tmp_path).results == []
