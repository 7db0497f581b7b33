"""A producer that enqueues jobs of all kinds until it is told to stop: produce.py SEED.

It never gives up on a job: refused or unknown, the same one is enqueued again.
"""

import random
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
from mill import (  # type: ignore[import-not-found]
    add_one,
    again_later,
    anap,
    apart,
    app,
    doomed,
    flaky,
    hand_on,
    nap,
    note_end,
    quick,
    talk,
    tally,
    trip,
)

from windlass import EnqueueFailed, EnqueueUnknown, NewJob, chain, group
from windlass.core.flow.rate import Rate

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


KEYS: list[tuple[int, Callable[[], dict[str, Any]]]] = [
    (60, dict),
    (6, lambda: {"concurrency_key": "one"}),
    (6, lambda: {"concurrency_key": "two", "key_limit": 2}),
    (6, lambda: {"concurrency_key": "three", "key_limit": 3}),
    (4, lambda: {"concurrency_key": f"strict {dice.randrange(3)}", "key_strict": True}),
    (3, lambda: {"concurrency_key": "rated", "key_limit": 3, "key_rate": Rate(4, 1_000_000, 2)}),
    (5, lambda: {"queue": "few"}),
    (4, lambda: {"queue": "slow", "rate_cost": dice.choice([None, 2])}),
    (4, lambda: {"queue": "shared", "tenant": dice.choice(["big", "small", None])}),
]
"""What flow control is there for, and nothing of it for most."""


def job() -> NewJob:
    """Any."""
    (make,) = dice.choices([kind for _, kind in KEYS], [weight for weight, _ in KEYS])
    return msgspec.structs.replace(plain(), **make())


def crowd() -> list[NewJob]:
    """Many at once, so that a limit, a rate or a share is felt."""
    if dice.random() < 0.5:
        terms = [{"queue": "slow", "rate_cost": dice.choice([None, 1, 3])} for _ in range(20)]
    else:
        terms = [{"queue": "shared", "tenant": tenant} for tenant in ("big", "small") for _ in range(80)]
    return [msgspec.structs.replace(quick.using(max_attempts=1000).job(1), **each) for each in terms]


LINKS: list[tuple[int, Callable[[Callable[[Any], Any]], Any]]] = [
    (8, lambda task: task(quick).job(dice.randrange(1000))),
    (3, lambda task: task(flaky).job(1)),
    (3, lambda task: task(nap).job(dice.uniform(0, 0.06))),
    (4, lambda task: task(doomed).job()),
    (1, lambda task: task(trip).job()),
]
"""What comes in a chain; each of them passes something on, or nothing."""


def links() -> list[NewJob]:
    """A chain, now of results that are passed on and now of others, in queues and after delays as they come."""
    found: list[Any] = []
    for _ in range(dice.randint(1, 4)):
        (make,) = dice.choices([kind for _, kind in LINKS], [weight for weight, _ in LINKS])
        some: list[dict[str, Any]] = [{}, {}, {"queue": "few"}, {"delay": dice.uniform(0, 0.5)}]
        terms = dice.choice(some)
        found.append(make(lambda task: task.using(max_attempts=1000, **terms)))  # noqa: B023
        if found[-1].type == "quick":
            found += [add_one.using(max_attempts=1000)] * dice.randint(0, 3)
    jobs = list(chain(*found).jobs)
    if dice.random() < 0.3:  # one that runs however the last of them ends
        last = msgspec.structs.replace(quick.using(max_attempts=1000).job(1).plain(), flow=jobs[0].flow)
        jobs.append(msgspec.structs.replace(last, parent=jobs[-1].id, parents=(jobs[-1].id,), when_ended=True))
    return jobs


MEMBERS = [*LINKS[:3], (1, LINKS[3][1]), LINKS[4]]
"""What comes in a group; few of them die."""


def members() -> list[NewJob]:
    """A group in several queues, now with callbacks in one of them and now in another."""
    found: list[Any] = []
    for _ in range(dice.randint(0, 8)):
        (make,) = dice.choices([kind for _, kind in MEMBERS], [weight for weight, _ in MEMBERS])
        terms: dict[str, Any] = dice.choice([{}, {}, {"queue": "few"}, {"delay": dice.uniform(0, 0.5)}])
        found.append(make(lambda task: task.using(max_attempts=1000, **terms)))  # noqa: B023
    last = tally.using(max_attempts=1000, queue=dice.choice(["default", "few"]))
    always = note_end.using(max_attempts=1000)
    need: Any = dice.choice(["all", "all", "50%", 0])
    return list(group(found, then=last, always=dice.choice([always, None]), need=need).jobs)


def nodes() -> list[NewJob]:
    """A graph with a node for each condition, in several queues."""
    flow, ready = app.flow(), quick.using(max_attempts=1000)
    found: list[Any] = []
    for _ in range(dice.randint(1, 4)):
        (make,) = dice.choices([kind for _, kind in LINKS], [weight for weight, _ in LINKS])
        terms: dict[str, Any] = dice.choice([{}, {}, {"queue": "few"}, {"delay": dice.uniform(0, 0.5)}])
        made = make(lambda task: task.using(max_attempts=1000, **terms))  # noqa: B023
        found.append(flow.add(made, after=dice.sample(found, dice.randint(0, min(2, len(found))))))
    flow.add(ready.job(1), after=found)
    rescue = flow.add(ready.using(queue=dice.choice(["default", "few"])).job(2), after=found, when="dead")
    flow.add(ready.job(3), after=[*found, rescue], when="ended")
    return [flow._own_job(), *flow._jobs]


def plain() -> NewJob:
    options: dict[str, object] = {"max_attempts": 1000, "priority": dice.choice([0, 0, 0, 5])}
    if dice.random() < 0.1:
        options["idempotency_key"] = f"key {dice.randrange(4)}"
    if dice.random() < 0.1:
        options["delay"] = dice.uniform(0, 1)
    (make,) = dice.choices([kind for _, kind in KINDS], [weight for weight, _ in KINDS])
    return make(lambda task: task.using(**options))


def enqueue_jobs(jobs: list[NewJob]) -> None:
    while True:
        try:
            app.enqueue_many(jobs)
        except (EnqueueFailed, EnqueueUnknown) as error:
            print(f"again, because: {error.__cause__}", file=sys.stderr)
            time.sleep(0.02)
        else:
            return


while not Path("stop").exists():
    if dice.random() < 0.1:
        enqueue_jobs(links())
    if dice.random() < 0.05:
        enqueue_jobs(members())
    if dice.random() < 0.03:
        enqueue_jobs(nodes())
    enqueue_jobs(crowd() if dice.random() < 0.01 else [job() for _ in range(dice.choice([1, 1, 1, 3]))])
    time.sleep(dice.uniform(0.02, 0.2))
app.close()
