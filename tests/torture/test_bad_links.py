"""Chains in histories made by hand: those in which every child waits for its parents pass, others do not."""

from collections.abc import Callable

import pytest

from tests.torture.test_checker import OTHER, PRODUCER, RUNNER, Tale
from windlass.core.jobs.dependencies import WAITING_FOR_PARENT, parent_ended_reason
from windlass.core.status import Status


class Chain(Tale):
    """Jobs with parents; a result is a word."""

    def link(self, job: str, *parents: str) -> None:
        """Enqueue a child that takes the results of all of them."""
        takes = [[f"from {parent}", parent] for parent in parents]
        self.enqueue(job, waits=bool(parents), parents=list(parents), result_params=takes)
        status, reason = ("blocked", WAITING_FOR_PARENT) if parents else ("pending", None)
        self.keep(job, status=status, reason=reason, parents=list(parents))

    def chain(self, *jobs: str) -> None:
        """One after the other."""
        for before, job in zip([None, *jobs], jobs, strict=False):
            self.link(job, *([before] if before else []))

    def work(self, job: str, attempt: int = 1, given: dict[str, str] | None = None, answer: str = "settled") -> None:
        """Run it to its end; its result has its name."""
        self.claim(job, attempt, given=given)
        self.start(job, attempt)
        self.end(job, attempt)
        self.complete(job, attempt, answer)

    def complete(self, job: str, attempt: int = 1, answer: str = "settled") -> None:
        reported = {
            "job": job,
            "attempt": attempt,
            "status": "completed",
            "outcome": "completed",
            "result": f"of {job}",
        }
        self.call("settle", {"jobs": [reported]}, {"answers": [answer]})
        if answer == "settled":
            self.keep(job, status="completed", reason=None)

    def fail(self, job: str) -> None:
        """It dies in its first attempt."""
        self.claim(job)
        self.start(job)
        self.end(job, outcome="Raised")
        self.settle(job, status="dead")
        self.keep(job, failures=1)

    def call_off(self, job: str, parent: str, status: Status = Status.DEAD) -> None:
        self.keep(job, status="cancelled", reason=parent_ended_reason(parent, status))


# Good ones.


def one_after_the_other(chain: Chain) -> None:
    chain.chain("a", "b", "c")
    chain.work("a")
    chain.work("b", given={"a": "of a"})
    chain.work("c", given={"b": "of b"})


def a_child_of_two(chain: Chain) -> None:
    chain.link("a")
    chain.link("b")
    chain.link("c", "a", "b")
    chain.work("a")
    chain.work("b")
    chain.work("c", given={"a": "of a", "b": "of b"})


def a_link_dies_and_takes_the_rest_with_it(chain: Chain) -> None:
    chain.chain("a", "b", "c")
    chain.fail("a")
    chain.call_off("b", "a")
    chain.call_off("c", "b", Status.CANCELLED)


def a_dead_link_is_retried_and_the_rest_goes_on(chain: Chain) -> None:
    a_link_dies_and_takes_the_rest_with_it(chain)
    chain.call("retry", {"jobs": ["a"]}, {"done": [True]}, PRODUCER)
    chain.work("a", 2)
    chain.work("b", given={"a": "of a"})
    chain.work("c", given={"b": "of b"})


def a_link_runs_again_with_what_it_had(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.work("a")
    chain.claim("b", given={"a": "of a"})
    chain.start("b")
    chain.fault(RUNNER)
    chain.rescue("b")
    chain.work("b", 2, given={"a": "of a"})


def a_completion_whose_answer_was_lost_let_the_child_go_on(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.claim("a")
    chain.start("a")
    chain.end("a")
    reported = {"job": "a", "attempt": 1, "status": "completed", "outcome": "completed", "result": "of a"}
    chain.ask("settle", jobs=[reported])
    chain.keep("a", status="completed")
    chain.work("b", given={"a": "of a"})


def another_stands_for_a_parent_that_had_its_key(chain: Chain) -> None:
    chain.enqueue("a", key="k")
    chain.enqueue("b", key="k", winner="a")
    chain.link("c", "b")
    chain.keep("c", parents=["a"])
    chain.work("a")
    chain.claim("c", given={"a": "of a"})


def a_link_still_waits_for_one_that_runs(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.claim("a")
    chain.start("a")


GOOD: list[Callable[[Chain], None]] = [
    one_after_the_other,
    a_child_of_two,
    a_link_dies_and_takes_the_rest_with_it,
    a_dead_link_is_retried_and_the_rest_goes_on,
    a_link_runs_again_with_what_it_had,
    a_completion_whose_answer_was_lost_let_the_child_go_on,
    another_stands_for_a_parent_that_had_its_key,
    a_link_still_waits_for_one_that_runs,
]


# Bad ones.


def a_child_is_claimed_before_its_parent_completed(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.claim("a")
    chain.start("a")
    chain.claim("b", given={"a": "of a"})
    chain.end("a")
    chain.complete("a")
    chain.start("b")
    chain.end("b")
    chain.complete("b")


def a_child_of_two_goes_on_after_the_first(chain: Chain) -> None:
    chain.link("a")
    chain.link("b")
    chain.link("c", "a", "b")
    chain.work("a")
    chain.work("c", given={"a": "of a"})
    chain.work("b")


def a_child_runs_though_its_parent_died(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.fail("a")
    chain.work("b", given={"a": "of a"})


def a_child_is_released_though_its_parent_died(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.fail("a")
    chain.keep("b", status="pending", reason=None)


def a_child_goes_on_by_a_completion_that_was_stale(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.claim("a")
    chain.start("a")
    chain.fault(RUNNER)
    chain.rescue("a")
    chain.end("a")
    chain.complete("a", answer="stale")
    chain.claim("b", pid=OTHER, given={"a": "of a"})


def a_child_gets_no_result(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.work("a")
    chain.work("b")


def a_child_gets_the_result_of_another(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.work("a")
    chain.work("b", given={"a": "of b"})


def a_result_is_lost_when_the_child_runs_again(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.work("a")
    chain.claim("b", given={"a": "of a"})
    chain.start("b")
    chain.fault(RUNNER)
    chain.rescue("b")
    chain.work("b", 2)


def a_child_waits_though_its_parent_completed(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.work("a")


def a_child_waits_though_its_parent_died(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.fail("a")


def a_child_of_two_waits_though_one_of_them_died(chain: Chain) -> None:
    chain.link("a")
    chain.link("b")
    chain.link("c", "a", "b")
    chain.fail("a")


def a_child_stays_cancelled_though_its_parent_was_retried_and_completed(chain: Chain) -> None:
    a_link_dies_and_takes_the_rest_with_it(chain)
    chain.call("retry", {"jobs": ["a"]}, {"done": [True]}, PRODUCER)
    chain.work("a", 2)


def a_child_is_cancelled_because_of_a_stranger(chain: Chain) -> None:
    chain.chain("a", "b")
    chain.link("stranger")
    chain.fail("stranger")
    chain.call_off("b", "stranger")


def a_child_has_lost_a_parent(chain: Chain) -> None:
    chain.link("a")
    chain.link("b")
    chain.link("c", "a", "b")
    chain.keep("c", parents=["a"])


BAD: list[Callable[[Chain], None]] = [
    a_child_is_claimed_before_its_parent_completed,
    a_child_of_two_goes_on_after_the_first,
    a_child_runs_though_its_parent_died,
    a_child_is_released_though_its_parent_died,
    a_child_goes_on_by_a_completion_that_was_stale,
    a_child_gets_no_result,
    a_child_gets_the_result_of_another,
    a_result_is_lost_when_the_child_runs_again,
    a_child_waits_though_its_parent_completed,
    a_child_waits_though_its_parent_died,
    a_child_of_two_waits_though_one_of_them_died,
    a_child_stays_cancelled_though_its_parent_was_retried_and_completed,
    a_child_is_cancelled_because_of_a_stranger,
    a_child_has_lost_a_parent,
]


@pytest.mark.parametrize("good", GOOD, ids=lambda good: good.__name__)
def test_a_chain_in_its_order_passes(good: Callable[[Chain], None]) -> None:
    chain = Chain()
    good(chain)
    report = chain.judge()
    assert not report.violations, str(report)


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: bad.__name__)
def test_a_chain_out_of_order_is_caught(bad: Callable[[Chain], None]) -> None:
    chain = Chain()
    bad(chain)
    report = chain.judge()
    assert "I14" in report.laws, str(report)
