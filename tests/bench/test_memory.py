"""Which memory belongs to which number of jobs."""

from bench.measures.memory import MIB, grown
from bench.usage import Usage
from bench.worker import Sample


def _sample(at: float, mib: int) -> Sample:
    return Sample(at, Usage(0.0, 0.0, 0.0, 0.0, mib * MIB))


def test_a_sample_counts_the_jobs_that_were_finished_by_then() -> None:
    samples = [_sample(1.0, 30), _sample(2.0, 40), _sample(3.0, 41), _sample(4.0, 42)]
    finishes = [(1.5, 10), (1.9, 5), (3.0, 85)]
    assert grown(samples, finishes) == [(15.0, 40.0), (100.0, 41.0), (100.0, 42.0)]
