"""What `import windlass` gives: pinned, sorted, documented."""

import inspect
import subprocess
import sys

import pytest

import windlass
from windlass import testing

PUBLIC = [
    *("PREVIOUS", "App", "Attempt", "Backoff", "BlobUnavailable", "ByError", "Cancel", "Chain", "ChainHandle"),
    *("ConfigError", "Context", "ContextTask", "Counts", "Dead", "Duration", "EnqueueFailed", "EnqueueUnknown"),
    *("Exponential", "Fixed", "Flow", "FlowCallback", "FlowNotFound", "Group", "GroupHandle", "Handle"),
    *("InvalidInput", "InvalidName", "InvalidOption", "InvalidPayload", "InvalidTime", "Job", "JobCancelled"),
    *("JobDead", "JobError", "JobFilters", "JobNotFound", "JobOptions", "JobRef", "KeyConflict", "LeaseLost"),
    *("Linear", "Links", "LogLine", "MemberFailure", "Meter", "NewJob", "NotAllowedNow", "NotInJob", "Page"),
    *("PayloadTooLarge", "Point", "Progress", "Queue", "QueueClosed", "QueueNotFound", "QueueOptions"),
    *("QueueRules", "QueueSettings", "Reason", "Recent", "ResultUnavailable", "Results", "Retry", "Schedule"),
    *("ScheduleNotFound", "ScheduleOptions", "ScheduleRules", "ScheduleSettings", "SchemaMismatch", "Series"),
    *("Snooze", "State", "Status", "Steps", "StoreUnavailable", "Task", "TaskJob", "TaskOptions", "TaskSet"),
    *("Timeline", "UnknownTask", "UseAsync", "Why", "WindlassError", "WorkerInfo", "__version__", "chain"),
    *("current_context", "current_job", "group"),
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
