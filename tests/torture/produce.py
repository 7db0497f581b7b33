"""A producer that hands in jobs of all kinds until it is told to stop: produce.py SEED.

It never gives up on a job: refused or unknown, the same one is handed in again.
"""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from mill import again_later, anap, apart, app, flaky, hand_on, nap, quick, talk, trip  # type: ignore[import-not-found]

from windlass import EnqueueFailed, EnqueueUnknown, NewJob

SEED = sys.argv[1]
dice = random.Random(SEED)

KINDS: list[tuple[int, Callable[[Callable[[Any], Any]], NewJob]]] = [
    (30, lambda task: task(quick).job(dice.randrange(1000))),
    (20, lambda task: task(nap).job(dice.uniform(0, 0.06))),
    (20, lambda task: task(anap).job(dice.uniform(0, 0.06))),
    (6, lambda task: task(anap).job(dice.uniform(0.5, 1.5))),
    (6, lambda task: task(flaky).job(dice.randint(1, 2))),
    (4, lambda task: task(talk).job()),
    (4, lambda task: task(again_later).job()),
    (4, lambda task: task(hand_on).job(dice.randrange(1000))),
    (2, lambda task: task(apart).job(dice.randrange(1000))),
    (1, lambda task: task(trip).job()),
]


def job() -> NewJob:
    options: dict[str, object] = {"max_attempts": 1000, "priority": dice.choice([0, 0, 0, 5])}
    if dice.random() < 0.1:
        options["idempotency_key"] = f"key {dice.randrange(4)}"
    if dice.random() < 0.1:
        options["delay"] = dice.uniform(0, 1)
    (make,) = dice.choices([kind for _, kind in KINDS], [weight for weight, _ in KINDS])
    return make(lambda task: task.using(**options))


def hand_in(jobs: list[NewJob]) -> None:
    while True:
        try:
            app.enqueue_many(jobs)
        except (EnqueueFailed, EnqueueUnknown) as error:
            print(f"again, because: {error}", file=sys.stderr)
            time.sleep(0.02)
        else:
            return


while not Path("stop").exists():
    hand_in([job() for _ in range(dice.choice([1, 1, 1, 3]))])
    time.sleep(dice.uniform(0.02, 0.2))
app.close()
