"""What is throttled is done in the end: no job is left behind the cursors for long."""

import pytest

from windlass.core.moments import SECOND, Micros
from windlass.store.postgres.limits import throttle
from windlass.store.postgres.limits.cursors import Cursors
from windlass.store.postgres.limits.throttle import MAX_PAUSE, Throttle


class Boot:
    """The boot clock, turned by hand."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now: Micros = 1000 * SECOND
        monkeypatch.setattr(throttle, "since_boot", lambda: self.now)


def test_a_claim_that_ended_before_it_looked_is_not_taken_for_a_long_look(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a queue has no tokens, a claim says so and looks for nothing: the time since the last look is no look."""
    boot, seen = Boot(monkeypatch), Cursors()
    seen.begin(0)
    assert seen.from_watermark
    seen.end([], fair=False, flowing=False)
    boot.now += 30 * SECOND
    seen.end([], fair=False, flowing=False)
    seen.begin(0)
    assert seen.from_watermark, "what was committed late would not be found for ten minutes"


def _run(boot: Boot, throttled: Throttle, taken: Micros) -> None:
    assert throttled.may_run()
    boot.now += taken
    throttled.done()


def test_a_process_stopped_in_the_middle_holds_it_for_a_minute_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    boot, something = Boot(monkeypatch), Throttle()
    for _ in range(2):
        _run(boot, something, 3600 * SECOND)
    assert not something.may_run()
    boot.now += MAX_PAUSE
    assert something.may_run()


def test_a_single_slow_run_delays_nothing_and_the_second_by_twenty_times(monkeypatch: pytest.MonkeyPatch) -> None:
    boot, something = Boot(monkeypatch), Throttle()
    for taken in (1000, SECOND, 1000, SECOND, SECOND // 2):
        _run(boot, something, taken)
    boot.now += 20 * SECOND // 2 - 1
    assert not something.may_run()
    boot.now += 1
    assert something.may_run()
