"""The text of a scrape, read with the parsers of prometheus-client, in both formats; its size and its names."""

from collections.abc import Callable, Iterable

import pytest
from prometheus_client import generate_latest
from prometheus_client.metrics_core import Metric
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from windlass import metrics
from windlass.observe import process
from windlass.observe.exposition import OPENMETRICS, PLAIN, expose
from windlass.observe.families import Family, gauge, process_families
from windlass.observe.figures import Figures
from windlass.observe.reading import COUNTERS, MAX_ROWS

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
MAX_TEXT = 2_000_000


def samples(families: Iterable[Metric]) -> Samples:
    return {
        (each.name, tuple(sorted(each.labels.items()))): each.value for family in families for each in family.samples
    }


def full_figures(rows: int) -> Figures:
    """Every counter and both histograms of so many pairs."""
    figures = Figures()
    for number in range(rows):
        for counter in COUNTERS:
            figures.count(counter, f"queue-{number % 500}", f"some.type.{number // 500}", number + 1)
        figures.observe(f"queue-{number % 500}", f"some.type.{number // 500}", [(number, 3 * number)], 2)
    figures.called(figures.verb("claim"), 700, failed=False)
    return figures


@pytest.mark.parametrize(
    ("accept", "kind", "parse"),
    [
        ("", PLAIN, text_string_to_metric_families),
        ("application/openmetrics-text; version=1.0.0", OPENMETRICS, openmetrics.text_string_to_metric_families),
    ],
)
def test_both_formats_say_what_the_official_library_says(
    monkeypatch: pytest.MonkeyPatch, accept: str, kind: str, parse: Callable[[str], Iterable[Metric]]
) -> None:
    figures = full_figures(3)
    monkeypatch.setattr(process, "_figures", {})
    process.want_figures(figures)
    got, text = expose(process_families(figures.read()), accept)
    theirs = samples(text_string_to_metric_families(generate_latest(metrics.registry).decode()))
    assert got == kind
    assert samples(parse(text.decode())) == {key: value for key, value in theirs.items() if key[0][-8:] != "_created"}


def test_a_label_is_escaped() -> None:
    said = gauge("windlass_x", "X.", [(('a"b\\c\nd',), 1)], ("type",))
    (family,) = text_string_to_metric_families(expose([said])[1].decode())
    assert family.samples[0].labels == {"type": 'a"b\\c\nd'}


def test_five_hundred_queues_of_fifty_types_stay_within_the_bound_and_two_megabytes() -> None:
    figures = full_figures(500 * 50)
    text = expose(process_families(figures.read()))[1]
    found = list(text_string_to_metric_families(text.decode()))
    pairs = {
        (each.labels["queue"], each.labels["type"])
        for family in found
        for each in family.samples
        if "type" in each.labels
    }
    started = sum(each.value for f in found if f.name == "windlass_jobs_started" for each in f.samples)
    assert len(pairs) == MAX_ROWS + 1
    assert ("other", "other") in pairs
    assert len(text) < MAX_TEXT
    assert started == sum(range(1, 25_001))


NAMES = {
    *(f"windlass_jobs_{name}" for name in ("enqueued", "started", "completed", "failed", "retried", "dead")),
    *(f"windlass_jobs_{name}" for name in ("rescued", "requeued", "cancelled", "snoozed")),
    *(
        "windlass_settlements_stale",
        "windlass_flows_ended",
        "windlass_leases_lost",
        "windlass_hints_lost",
        "windlass_store_conflicts",
        "windlass_build_info",
    ),
    *("windlass_job_run_seconds", "windlass_job_wait_seconds"),
    *("windlass_store_call_seconds", "windlass_store_call_errors"),
}


def test_the_names_are_these_and_all_have_help() -> None:
    families: list[Family] = process_families(full_figures(1).read())
    assert {each.name for each in families} == NAMES
    assert all(each.help.endswith(".") for each in families)
    assert len({each.name for each in families}) == len(families)
