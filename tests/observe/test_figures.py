"""Figures: counts in memory that two processes share, bounded, and added up whatever becomes of the writer."""

import subprocess
import sys
import threading
from random import Random

import pytest

from tests.services.parts import claimed
from tests.support.seed import ENDINGS
from windlass.core.jobs.job import JobError
from windlass.core.jobs.outcome import Crashed, Policy, Raised, decide, requeue
from windlass.core.jobs.retry import DEFAULT_POLICY
from windlass.core.moments import SECOND
from windlass.observe.figures import Figures
from windlass.observe.reading import COUNTERS, MAX_ROWS, OTHER, TOTALS, Reading, Timing, ending_counters


def test_what_is_counted_is_read() -> None:
    figures = Figures()
    figures.count("completed", "mail", "welcome", 3)
    figures.count("completed", "mail", "welcome")
    figures.count("failed", "mail", "other.type")
    figures.count_total("leases_lost")
    read = figures.read()
    assert read.jobs["mail", "welcome"].counters == {**dict.fromkeys(COUNTERS, 0), "completed": 4}
    assert read.jobs["mail", "other.type"].counters["failed"] == 1
    assert read.totals == {**dict.fromkeys(TOTALS, 0), "leases_lost": 1}


def test_another_process_reads_the_same_memory_also_when_the_writer_is_gone() -> None:
    figures = Figures.create_shared()
    assert figures.descriptor is not None
    write = f"Figures.shared({figures.descriptor}).count('started', 'q', 't', 7); os.kill(os.getpid(), 9)"
    program = f"import os; from windlass.observe.figures import Figures; {write}"
    ended = subprocess.run([sys.executable, "-c", program], pass_fds=[figures.descriptor], check=False)
    assert ended.returncode == -9
    assert figures.read().jobs["q", "t"].counters["started"] == 7
    figures.close()


def test_a_value_is_in_the_first_bucket_whose_bound_it_does_not_exceed() -> None:
    figures = Figures()
    figures.observe("q", "t", [(5_000, 5_001)], 1)
    figures.observe("q", "t", [(20_000 * SECOND, 0)], 1)
    found = figures.read().jobs["q", "t"]
    assert (found.wait.bins[0], found.wait.bins[-1], found.wait.sum) == (1, 1, 20_000.005)
    assert (found.run.bins[0], found.run.bins[1], found.run.sum) == (1, 1, 0.005001)


@pytest.mark.parametrize("number", [3, 8, 100, 101])
def test_a_sample_represents_all_attempts(number: int) -> None:
    figures = Figures()
    figures.observe("q", "t", [(1000, 1000)] * 3, number)
    found = figures.read().jobs["q", "t"]
    assert found.run.count == found.wait.count == number
    assert found.run.sum == pytest.approx(number * 0.001)


def test_beyond_the_bound_everything_is_counted_under_other() -> None:
    figures = Figures()
    for number in range(MAX_ROWS + 50):
        figures.count("started", f"q{number % 7}", f"t{number}", 2)
    figures.count("started", "q0", "t0")
    read = figures.read()
    assert len(read.jobs) == MAX_ROWS + 1
    assert read.jobs["q0", "t0"].counters["started"] == 3
    assert read.jobs[OTHER, OTHER].counters["started"] == 100


def test_a_pair_that_is_called_other_keeps_its_counts_beyond_the_bound() -> None:
    figures = Figures()
    figures.count("started", OTHER, OTHER, 5)
    for number in range(MAX_ROWS + 1):
        figures.count("started", "q", f"t{number}")
    read = figures.read()
    assert read.jobs[OTHER, OTHER].counters["started"] == 5 + 2
    assert sum(each.counters["started"] for each in read.jobs.values()) == 5 + MAX_ROWS + 1


def test_a_signal_handler_may_count_in_the_midst_of_a_count() -> None:
    figures = Figures()

    class Interrupted(int):
        def __mul__(self, weight: int) -> int:
            figures.count("enqueued", "q", "t")
            return int(self) * weight

    counting = threading.Thread(
        target=figures.called, args=(figures.verb("enqueue"), Interrupted(7)), kwargs={"failed": False}, daemon=True
    )
    counting.start()
    counting.join(30)
    assert not counting.is_alive()
    assert figures.read().jobs["q", "t"].counters["enqueued"] == 1
    assert figures.read().calls["enqueue"].times.count == 1


def test_readings_add_up_within_the_bound_and_change_none_of_their_parts() -> None:
    first, second = Figures(), Figures()
    second.count("completed", "a", "t0")
    for number in range(MAX_ROWS):
        first.count("completed", "a", f"t{number}")
        second.count("completed", "b", f"t{number}")
    second.called(second.verb("claim"), 1000, failed=True)
    total, past = Reading(), Reading()
    past.add(first.read())
    for _ in range(2):
        total = Reading()
        total.add(past)
        total.add(second.read())
    assert sum(each.counters["completed"] for each in total.jobs.values()) == 2 * MAX_ROWS + 1
    assert total.jobs["a", "t0"].counters["completed"] == 2
    assert len(total.jobs) == MAX_ROWS + 1
    assert past.jobs["a", "t0"].counters["completed"] == 1
    assert (total.calls["claim"].errors, total.calls["claim"].times.count) == (1, 1)


def test_threads_lose_no_count() -> None:
    figures = Figures()

    def count() -> None:
        for _ in range(5_000):
            figures.count("enqueued", "q", "t")

    threads = [threading.Thread(target=count) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert figures.read().jobs["q", "t"].counters["enqueued"] == 20_000


ENDED = {
    "completed": ("completed",),
    "failed": ("failed", "retried"),
    "dead": ("failed", "dead_raised"),
    "cancelled": ("cancelled",),
    "snoozed": ("snoozed",),
    "requeued": (),
}


@pytest.mark.parametrize("ending", ENDED)
def test_every_ending_has_its_counters(ending: str) -> None:
    assert ending_counters(ENDINGS[ending](claimed())) == ENDED[ending]


def test_the_reason_of_a_death_is_one_of_four() -> None:
    error, last = Raised(ValueError("x"), JobError("ValueError", "x")), claimed()
    last = type(last)(**{**{name: getattr(last, name) for name in last.__struct_fields__}, "failures": 2})
    crashed = type(last)(**{**{name: getattr(last, name) for name in last.__struct_fields__}, "crashes": 2})
    rules = Policy(DEFAULT_POLICY)
    assert ending_counters(decide(last, error, rules, Random(1))) == ("failed", "dead_attempts")
    unretried = decide(claimed(), error, Policy(DEFAULT_POLICY, (ValueError,)), Random(1))
    assert ending_counters(unretried) == ("failed", "dead_not_retried")
    died = decide(crashed, Crashed(JobError("Crashed", "x")), rules, Random(1))
    assert ending_counters(died) == ("failed", "dead_crashed")
    again = decide(claimed(), Crashed(JobError("Crashed", "x")), rules, Random(1))
    assert ending_counters(again) == ("failed", "retried")
    assert ending_counters(requeue("id", "q", 1)) == ()


def test_figures_that_are_absorbed_again_and_again_are_counted_once() -> None:
    ours, theirs, absorbed = Figures(), Figures(), dict[int, int]()
    ours.count("enqueued", "mail", "first")
    for number in range(1, 4):
        theirs.count("enqueued", "mail", "welcome", 2)
        theirs.count_total("hints_lost")
        theirs.called(theirs.verb("enqueue"), 700, failed=number == 2)
        for _ in range(2):
            ours.absorb(theirs, absorbed)
        read = ours.read()
        assert read.jobs["mail", "welcome"].counters["enqueued"] == 2 * number
        assert (read.totals["hints_lost"], read.calls["enqueue"].times.count) == (number, number)
    assert read.jobs["mail", "first"].counters["enqueued"] == read.calls["enqueue"].errors == 1
    assert read.calls["enqueue"].times.sum == pytest.approx(0.0021)


def test_started_attempts_are_counted_by_name_within_the_bound_and_as_other_beyond_it() -> None:
    figures = Figures()
    for _ in range(2):
        for number in range(MAX_ROWS + 5):
            figures.count_started("q", f"t{number}")
    read = figures.read()
    assert {pair: each.counters["started"] for pair, each in read.jobs.items()} == {
        **{("q", f"t{number}"): 2 for number in range(MAX_ROWS)},
        (OTHER, OTHER): 10,
    }


def test_a_sum_does_not_depend_on_the_order_in_which_runners_are_added_up() -> None:
    lengths = [100_000, 200_000, 300_000]

    def total(order: list[int]) -> float:
        added = Timing([0], 0)
        for length in order:
            added.add(Timing([1], length))
        return added.sum

    assert total(lengths) == total(lengths[::-1]) == 0.6, "0.1 + 0.2 + 0.3 is more than 0.3 + 0.2 + 0.1"
