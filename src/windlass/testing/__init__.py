"""For the tests of programs that use Windlass: jobs run here and now, on a store in memory, in time that a test
moves.

app = App.testing()                     a new app; or, for an existing app,
with sandbox(app) as box: ...           its jobs go to a store in memory for a while
run_all(app)                            runs what is due, through the same code as a worker
app.clock.advance(hours=1)              lets time pass
assert_enqueued(app, welcome, 42)       a job waits, with these arguments
render(context(), 7)                    calls a handler that takes a Context
crash_test(app, pay.job(7), ...)        kills the handler at every step, to show whether it is idempotent
"""

from windlass.store.clock import ManualClock
from windlass.testing.context import RecordedContext, context
from windlass.testing.crash import CrashOptions, CrashReport, CrashStep, NotIdempotent, acrash_test, crash_test
from windlass.testing.effects import Effects
from windlass.testing.expect import assert_enqueued, assert_not_enqueued, enqueued
from windlass.testing.inline_runner import RunOptions
from windlass.testing.report import Report
from windlass.testing.run import arun_all, run_all
from windlass.testing.sandbox import Sandbox, sandbox

__all__ = [
    "CrashOptions",
    "CrashReport",
    "CrashStep",
    "Effects",
    "ManualClock",
    "NotIdempotent",
    "RecordedContext",
    "Report",
    "RunOptions",
    "Sandbox",
    "acrash_test",
    "arun_all",
    "assert_enqueued",
    "assert_not_enqueued",
    "context",
    "crash_test",
    "enqueued",
    "run_all",
    "sandbox",
]
