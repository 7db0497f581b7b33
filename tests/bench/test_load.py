"""Whether a load was kept up with."""

from bench.context import Load
from bench.measures.load import LoadRounds, lag

MS = 1_000_000


def _pairs(*, every: int, after: int, jobs: int = 200) -> list[tuple[int, int]]:
    return [(n * every * MS, (n * every + after) * MS) for n in range(jobs)]


def test_jobs_that_come_and_start_in_time_are_kept_up_with() -> None:
    assert lag(Load(100, 200), _pairs(every=10, after=5)) is None


def test_a_producer_that_is_slower_than_its_rate_does_not_keep_up() -> None:
    assert lag(Load(100, 200), _pairs(every=50, after=5)) == "cannot keep up: enqueued 20 jobs/s of 100"


def test_a_worker_that_falls_behind_does_not_keep_up() -> None:
    pairs = [(sent, started + n * 10 * MS) for n, (sent, started) in enumerate(_pairs(every=10, after=5))]
    assert lag(Load(100, 200), pairs) == "cannot keep up: the last job started 2.0 s after it was enqueued"


def test_many_producers_share_the_jobs() -> None:
    assert lag(Load(10, 200, 10), _pairs(every=10, after=5)) is None


def test_of_few_samples_the_worst_is_given() -> None:
    few, many = LoadRounds(), LoadRounds()
    few.add(Load(100, 100), [*_pairs(every=10, after=5, jobs=99), (0, 700 * MS)])
    many.add(Load(100, 200), [*_pairs(every=10, after=5, jobs=199), (0, 700 * MS)])
    assert (few.median, few.worst) == ([5.0], [700.0])
    assert many.worst == [5.0]
