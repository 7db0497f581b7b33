"""Which kinds of faults a run has, and in which order."""

import os
import random
from collections.abc import Callable, Iterator, Mapping
from itertools import cycle

Kind = Callable[[int], None]
"""Does it, to the worker or producer at that place or to everything."""
Weighted = Mapping[str, tuple[int, Kind]]

VARIABLE = "TORTURE_KINDS"
"""Names of the only kinds that a run has, with commas between them."""
SEEDS_FOR_ALL = 3
"""Consecutive seeds that have every long kind between them."""
BETWEEN = 2
"""Short faults between two long ones."""


def wanted() -> frozenset[str] | None:
    """The kinds that were asked for; None: as the seed says."""
    names = os.environ.get(VARIABLE, "").replace(" ", "")
    return frozenset(names.split(",")) if names else None


def choose(seed: int, short: Weighted, long: Mapping[str, Kind]) -> tuple[Weighted, list[Kind]]:
    """The short and the long kinds of a run: those that were asked for, or all short ones and a seed's long ones."""
    names = wanted()
    if names is None:
        return short, [long[name] for place, name in enumerate(long) if place % SEEDS_FOR_ALL == seed % SEEDS_FOR_ALL]
    return (
        {name: each for name, each in short.items() if name in names},
        [kind for name, kind in long.items() if name in names],
    )


def in_order(dice: random.Random, short: Weighted, long: list[Kind]) -> Iterator[Kind]:
    """Short kinds by their weights, and after every few of them the next long one; a long one comes first."""
    kinds, weights = [kind for _, kind in short.values()], [weight for weight, _ in short.values()]
    dice.shuffle(long)
    following = cycle(long)
    while True:
        if long:
            yield next(following)
        if kinds:
            yield from dice.choices(kinds, weights, k=BETWEEN)
