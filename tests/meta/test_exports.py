"""What `import windlass` gives: pinned, sorted, documented."""

import inspect
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args, get_origin, get_type_hints

import pytest

import windlass
from windlass import App, testing
from windlass.client.verbs.group import Verbs

PUBLIC = [
    *("PREVIOUS", "Action", "ActionNotFound", "Actor", "App", "Attempt", "AuditEntry", "Backoff"),
    *("BlobUnavailable", "ByError", "Cancel", "CatchUp", "Chain", "ChainHandle", "ConfigError", "Context"),
    *("ContextTask", "Counts", "Cron", "Dead", "Duration", "EarlierPayload", "EnqueueFailed"),
    *("EnqueueUnknown", "Exponential"),
    *("Fixed", "Flow", "FlowCallback", "FlowEdge", "FlowHandle", "FlowNode", "FlowNotFound", "FlowTree", "Graph"),
    *("Group", "GroupHandle", "GroupOptions", "Handle", "Histogram"),
    *("InvalidInput", "InvalidName", "InvalidOption", "InvalidPayload", "InvalidTime", "Job", "JobCancelled"),
    *("JobDead", "JobError", "JobFilters", "JobNotFound", "JobOptions", "JobRef", "KeyConflict", "LeaseLost"),
    *("Linear", "Links", "LogLine", "MapNode", "MemberFailure", "Meter", "NewJob", "NewSecret", "NewToken"),
    *("Node",),
    *("NotAllowedNow", "NotInJob", "OnConflict", "OpenGroup", "OwnGroup", "Page", "PayloadTooLarge", "Point"),
    *("Progress", "Quantiles", "Queue"),
    *("QueueClosed", "QueueNotFound", "QueueOptions", "QueueRules", "QueueSettings", "Rate", "Reason"),
    *("Recent", "ResultUnavailable", "Results", "Retry", "Schedule", "ScheduleNotFound", "ScheduleOptions"),
    *("ScheduleRules", "ScheduleSettings", "SchemaMismatch", "Scope", "Series", "Snooze", "State", "Status"),
    *("Steps", "StoreUnavailable", "Task", "TaskJob", "TaskOptions", "TaskSet", "Timeline", "Token"),
    *(
        "TokenNotFound",
        "UnknownTask",
        "UseAsync",
        "Webhook",
        "WebhookNotFound",
        "WebhookOptions",
        "Why",
        "WindlassError",
    ),
    *("WorkerInfo", "__version__", "chain", "current_context", "current_job", "group"),
]
"""A change here is a change of the public face: it belongs into the changelog."""

PUBLIC_FOR_TESTS = [
    *("CrashOptions", "CrashReport", "CrashStep", "Effects", "ManualClock", "NotIdempotent", "RecordedContext"),
    *("Report", "RunOptions", "Sandbox", "acrash_test", "arun_all", "assert_enqueued", "assert_not_enqueued"),
    *("context", "crash_test", "enqueued", "run_all", "sandbox"),
]


def test_the_public_names_are_these_and_no_others() -> None:
    assert windlass.__all__ == PUBLIC


def test_the_public_names_are_sorted_constants_first() -> None:
    assert windlass.__all__ == sorted(windlass.__all__, key=lambda name: (not name.isupper(), name))


@pytest.mark.parametrize("name", PUBLIC)
def test_every_public_name_is_there(name: str) -> None:
    assert getattr(windlass, name) is not None


@pytest.mark.parametrize("name", [name for name in PUBLIC if name != "__version__"])
def test_every_public_name_is_documented(name: str) -> None:
    thing = getattr(windlass, name)
    kind = thing if isinstance(thing, type) else type(thing)
    own = thing.__doc__ if inspect.isfunction(thing) else vars(kind).get("__doc__")
    assert own, f"{name} has no docstring of its own"
    bare = [
        member
        for member, value in vars(kind).items()
        if not member.startswith("_")
        and (inspect.isfunction(value) or isinstance(value, property))
        and not inspect.getdoc(value)
    ]
    assert bare == []


def test_every_type_in_the_annotations_of_public_records_and_verbs_is_exported() -> None:
    faces = [type(each) for each in vars(App.testing()).values() if isinstance(each, Verbs)]
    assert len(faces) >= 8
    records = [each for each in vars(windlass).values() if inspect.isclass(each)]
    verbs = [member for face in faces for name, member in vars(face).items() if not name.startswith("_")]
    hints = [get_type_hints(each) for each in [*records, *filter(inspect.isfunction, verbs)]]
    named = {
        kind
        for hint in hints
        for name, annotation in hint.items()
        if not name.startswith("_")
        for kind in _classes(annotation)
    }
    ours = {each.__name__ for each in named if each.__module__.startswith("windlass.")}
    assert ours - set(PUBLIC) - OF_THE_PARTS - set(PUBLIC_FOR_TESTS) == set()


OF_THE_PARTS = {"HasId", "Jobs", "Registry", "Rights"}
"""Named by JobRef, or by what only the parts of Windlass pass to each other."""


def _classes(annotation: Any) -> Iterator[type]:
    """All classes that an annotation names."""
    if inspect.isclass(annotation):
        yield annotation
    for part in (get_origin(annotation), *get_args(annotation)):
        if part is not None and part is not annotation:
            yield from _classes(part)


def test_every_error_has_a_code_of_its_own() -> None:
    errors = [value for value in vars(windlass).values() if inspect.isclass(value)]
    codes = [each.code for each in errors if issubclass(each, windlass.WindlassError)]
    assert len(codes) == len(set(codes)) >= 24


def test_importing_windlass_loads_no_store_no_command_line_and_no_worker() -> None:
    script = "import sys, windlass; print(*[m for m in sys.modules if m.split('.')[0] in ('apsw', 'typer', 'rich')])"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == ""


def test_the_names_for_tests_of_programs_are_these_sorted_and_documented() -> None:
    assert testing.__all__ == PUBLIC_FOR_TESTS == sorted(PUBLIC_FOR_TESTS)
    assert [name for name in PUBLIC_FOR_TESTS if not inspect.getdoc(getattr(testing, name))] == []
