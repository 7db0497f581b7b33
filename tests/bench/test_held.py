"""Which jobs of a drain are its first and its last, and how fast they were."""

from bench.measures.held import edges
from bench.measures.history import rate
from bench.stores.base import Span

FINISHES = [(10.1, 10), (10.2, 10), (10.4, 10), (10.8, 10)]


def test_the_first_jobs_count_from_the_first_claim_and_the_last_up_to_the_last_completion() -> None:
    first, last = edges(Span(40, 10.0, 10.8), FINISHES, 20)
    assert (round(first), round(last)) == (100, 33)


def test_jobs_that_had_ended_before_are_no_part_of_a_drain() -> None:
    assert round(rate([(5.0, 1_000), *FINISHES], 1_000), 3) == round(rate(FINISHES, 0), 3) == round(30 / 0.7, 3)
