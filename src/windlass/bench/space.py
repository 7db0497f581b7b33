"""Space: what a job takes where jobs are kept in memory, while it waits and after it has ended."""

from windlass.bench import tasks
from windlass.bench.figures import Row, Section, bars
from windlass.bench.ground import Ground
from windlass.bench.labour import CHUNK, Labour
from windlass.client.app import App

TITLE = "Space: memory of the server for each job"
PAYLOAD = 100
UNIT = "bytes/job"


def measure(ground: Ground) -> Section:
    """Before, while all wait, and after all have ended."""
    waiting, finished, jobs = list[float](), list[float](), ground.scale.drain
    for _ in ground.rounds("space"):
        with ground.store() as address:
            empty = ground.yardstick.occupied(address)
            if empty is None:
                return Section(name="space", title=TITLE, rows=[], notes=["Not run: jobs are on disk here."])
            _fill(address, jobs)
            full = ground.yardstick.occupied(address)
            Labour(address, ground.folder).drain()
            ended = ground.yardstick.occupied(address)
        assert full is not None
        assert ended is not None
        waiting.append((full - empty) / jobs)
        finished.append((ended - empty) / jobs)
    rows = [
        Row(name="waiting", unit=UNIT, rounds=waiting, target=ground.yardstick.goals.space),
        Row(name="finished", unit=UNIT, rounds=finished),
    ]
    return Section(
        name="space",
        title=f"{TITLE}, {jobs:,} of them",
        rows=rows,
        charts=[bars("Memory of a job", rows)],
        notes=[f"Payloads of {PAYLOAD} bytes. What the server says that its data take, less what it said before."],
    )


def _fill(address: str, jobs: int) -> None:
    empty = len(tasks.noop.job(1, "").payload)
    app = App(address)
    try:
        for start in range(0, jobs, CHUNK):
            app.enqueue_many([tasks.noop.job(1, "x" * (PAYLOAD - empty)) for _ in range(min(CHUNK, jobs - start))])
    finally:
        app.close()
