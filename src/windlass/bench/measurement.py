"""What `windlass bench` measures; a module of its own, so that the command line need not load the bench."""

from enum import StrEnum

import msgspec

QUEUE = "windlass-bench"


class Measurement(StrEnum):
    """What can be measured."""

    ENQUEUE = "enqueue"
    DRAIN = "drain"
    LATENCY = "latency"


class Figure(msgspec.Struct, frozen=True):
    """A figure with its value in each round."""

    name: str
    unit: str
    median: float
    rounds: list[float]
