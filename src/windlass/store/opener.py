"""Who opens a store: that decides how many connections there are, what is heard on them, and who goes first."""

from enum import Enum, auto


class Opener(Enum):
    """The process that a store is opened for, by its part in the whole."""

    CLIENT = auto()
    """Hands in and looks: whoever is none of the others."""
    RUNNER = auto()
    """Runs handlers."""
    COORDINATOR = auto()
    """Does the duties without running jobs."""
    SUPERVISOR = auto()
    """Keeps runners, and hears for them that there is work."""
