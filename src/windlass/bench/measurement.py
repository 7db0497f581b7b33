"""The names of what is measured: alone, since the command line shows them without loading the bench."""

from enum import StrEnum


class Measurement(StrEnum):
    """What can be measured."""

    DRAIN = "drain"
    ENQUEUE = "enqueue"
    LATENCY = "latency"
    FLOW = "flow"
    CHAINS = "chains"
    DELAYS = "delays"
    GROWTH = "growth"
    HELD = "held"
    HISTORY = "history"
    MEMORY = "memory"
    POOLER = "pooler"
    PROFILE = "profile"
    SPACE = "space"
