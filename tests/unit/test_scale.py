"""The number for scalers: running jobs and those that could start, without paused queues and beyond no limit."""

from windlass.core.flow.queue import Queue, settings
from windlass.core.stats.scale import QueueLoad, scale

COUNTS = {
    "default": {"pending": 7, "running": 2, "scheduled": 100, "failed": 3, "blocked": 4},
    "mail": {"pending": 5, "running": 1},
    "images": {"pending": 50, "running": 1},
}
QUEUES = [
    Queue(name="default"),
    Queue(name="mail", paused=True),
    Queue(name="images", declared=settings(max_concurrency=4)),
]


def test_running_and_pending_jobs_count_and_waiting_ones_do_not() -> None:
    assert scale(COUNTS, QUEUES, ["default"]).value == 9


def test_of_a_paused_queue_only_what_runs_counts() -> None:
    assert scale(COUNTS, QUEUES, ["mail"]).value == 1


def test_a_queue_counts_up_to_its_limit() -> None:
    assert scale(COUNTS, QUEUES, ["images"]).value == 4
    assert scale({"images": {"pending": 0, "running": 6}}, QUEUES).value == 6


def test_without_a_choice_all_are_added_up_and_the_parts_are_given() -> None:
    found = scale(COUNTS, QUEUES)
    assert found.value == 9 + 1 + 4
    assert found.queues["images"] == QueueLoad(50, 1, False, 4)


def test_a_queue_that_is_not_known_adds_nothing() -> None:
    assert scale(COUNTS, QUEUES, ["nowhere"]).value == 0
    assert scale({"new": {"pending": 3}}, []).value == 3
