"""What `windlass bench` measures: apart, since the command line shows it without loading the bench."""

from enum import StrEnum

import msgspec

QUEUE = "windlass-bench"


class Measurement(StrEnum):
    """What can be measured."""

    ENQUEUE = "enqueue"
    DRAIN = "drain"
    LATENCY = "latency"


class Figure(msgspec.Struct, frozen=True):
    """One figure of every round."""

    name: str
    unit: str
    median: float
    rounds: list[float]
