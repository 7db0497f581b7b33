"""Another program writes to the SQLite file for longer than a lease: a backup, a shell, a migration of its own."""

from pathlib import Path

from tests.torture.faults.long_jobs import long_fault
from tests.torture.nemesis import Nemesis

_PROGRAM = Path(__file__).with_name("hold_file.py")


def stranger_write(nemesis: Nemesis) -> None:
    with long_fault(nemesis, "a stranger writes") as seconds:
        stranger = nemesis.yard.processes.start(
            "stranger", str(_PROGRAM), str(nemesis.yard.database), f"{seconds:.3f}"
        )
        assert stranger.wait() == 0, stranger.output
