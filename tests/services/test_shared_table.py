"""The table that a runner shares with its supervisor: two views of the same memory."""

import os
from collections.abc import Iterator

import pytest

from tests.services.parts import table_of
from windlass.core.ids import new_id
from windlass.core.moments import SECOND
from windlass.worker.shared_table import MAX_STEP, SharedTable, State


@pytest.fixture
def views() -> Iterator[tuple[SharedTable, SharedTable]]:
    """The runner's view and the supervisor's, of one memory."""
    with table_of(4) as supervisor:
        runner = SharedTable(os.dup(supervisor.descriptor), 4)
        yield runner, supervisor
        runner.close()


def test_what_the_runner_holds_is_seen_by_the_supervisor(views: tuple[SharedTable, SharedTable]) -> None:
    runner, supervisor = views
    id_ = new_id()
    index = runner.prefetch(id_, 7, 100, 200)
    (entry,) = supervisor.held()
    assert (entry.id, entry.attempt, entry.state, entry.since, entry.start_by) == (id_, 7, State.PREFETCHED, 100, 200)
    assert runner.start(index, 150, 0)
    assert [(e.state, e.since) for e in supervisor.held()] == [(State.STARTED, 150)]
    runner.end(index)
    assert [e.state for e in supervisor.held()] == [State.ENDED]
    runner.free(index)
    assert list(supervisor.held()) == []


def test_taken_before_started_the_supervisor_has_it(views: tuple[SharedTable, SharedTable]) -> None:
    runner, supervisor = views
    index = runner.prefetch(new_id(), 1, 0, 0)
    supervisor.take(index)
    assert [entry.state for entry in supervisor.held()] == [State.PREFETCHED]
    assert runner.start(index, 1, 0) is False


def test_started_before_taken_the_runner_has_it(views: tuple[SharedTable, SharedTable]) -> None:
    runner, supervisor = views
    index = runner.prefetch(new_id(), 1, 0, 0)
    assert runner.start(index, 1, 0) is True
    supervisor.take(index)
    assert [entry.state for entry in supervisor.held()] == [State.STARTED]


def test_an_entry_that_is_filled_anew_is_not_taken(views: tuple[SharedTable, SharedTable]) -> None:
    runner, supervisor = views
    index = runner.prefetch(new_id(), 1, 0, 0)
    supervisor.take(index)
    runner.free(index)
    again = runner.prefetch(new_id(), 2, 0, 0)
    assert again == index
    assert runner.start(again, 1, 0) is True


def test_room_is_what_is_left(views: tuple[SharedTable, SharedTable]) -> None:
    runner, _ = views
    held = [runner.prefetch(new_id(), 1, 0, 0) for _ in range(4)]
    assert runner.room == 0
    with pytest.raises(IndexError):
        runner.prefetch(new_id(), 1, 0, 0)
    runner.free(held[2])
    assert (runner.room, runner.prefetch(new_id(), 1, 0, 0)) == (1, held[2])


def test_the_header_is_shared(views: tuple[SharedTable, SharedTable]) -> None:
    runner, supervisor = views
    supervisor.valid_until = 2**62
    runner.tick, runner.completed = 5, 6
    assert (runner.valid_until, supervisor.tick, supervisor.completed) == (2**62, 5, 6)
    assert list(supervisor.held()) == []


def test_the_largest_attempt_fits(views: tuple[SharedTable, SharedTable]) -> None:
    runner, supervisor = views
    runner.prefetch(new_id(), 2**32 - 1, -1, 2**62)
    assert [(e.attempt, e.since, e.start_by) for e in supervisor.held()] == [(2**32 - 1, -1, 2**62)]


def test_active_time_stops_while_the_supervisor_is_stopped_and_goes_on_with_it() -> None:
    start, step, night = 1_000 * SECOND, MAX_STEP, 8 * 3_600 * SECOND
    with table_of() as table:
        assert table.active_time(start) == start, "no supervisor keeps time yet"
        table.keep_time(start)
        assert table.active_time(start + step) == start + step
        asleep = [table.active_time(start + step + night), table.active_time(start + 2 * night)]
        assert asleep == [start + step] * 2
        table.keep_time(start + night)
        awake = table.active_time(start + night)
        assert awake == start + step
        table.keep_time(start + night + step)
        assert table.active_time(start + night + 2 * step) == awake + 2 * step
