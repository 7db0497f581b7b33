"""Which statements fail, and how long a round trip takes: chosen by a seed."""

import random
from collections import Counter
from typing import NamedTuple


class Failure(NamedTuple):
    """An error of the server."""

    state: str
    text: str

    @property
    def block(self) -> str:
        """A statement that raises it."""
        text = self.text.replace("'", "''").replace("%", "%%")
        return f"DO $fault$ BEGIN RAISE EXCEPTION '{text}' USING ERRCODE = '{self.state}'; END $fault$"


RETRYABLE = (
    Failure("40001", "could not serialize access due to concurrent update"),
    Failure("40001", "Restart read required at: { read: { physical: 1767225600000000 } local_limit: { max } }"),
    Failure("40001", "Transaction expired or aborted by a conflict: Operation expired (query layer retry failed)"),
    Failure("40P01", "deadlock detected"),
)
"""What a client has to answer by trying again."""


class Limits(NamedTuple):
    """What a proxy does to its connections."""

    seed: int = 1
    delay: tuple[float, float] = (0.001, 0.005)
    """Seconds that each round trip takes longer: from, to."""
    failing: float = 0.1
    """The share of statements that fail."""
    failing_commits: float = 0.1
    """The share of commits that fail, of transactions and of statements that are their own."""
    refusing: bool = True
    """Whether statements that YugabyteDB does not have are refused."""


EVERY_TENTH_FAILS = Limits()
FEW_FAIL = Limits(failing=0.01, failing_commits=0.01)
"""For calls with a client's deadline: if one in ten fails, a transaction of forty statements never commits."""


class Dice:
    """The choices of one connection, and the counts of all."""

    def __init__(self, limits: Limits, number: int, counts: "Counter[str]") -> None:
        self.limits = limits
        self._random = random.Random(f"{limits.seed}/{number}")
        self._counts = counts

    def delay(self) -> float:
        self._counts["round trips"] += 1
        return self._random.uniform(*self.limits.delay)

    def fails(self) -> Failure | None:
        """Whether the next statement fails."""
        self._counts["statements"] += 1
        return self._choose("failed statements", self.limits.failing)

    def commit_fails(self, where: str) -> Failure | None:
        """Whether the next commit fails: `where` says by which message it would be applied."""
        self._counts[f"{where} commits"] += 1
        return self._choose(f"failed {where} commits", self.limits.failing_commits)

    def refuse(self, what: str) -> Failure:
        self._counts["refused"] += 1
        return Failure("0A000", f"{what} not supported yet")

    def _choose(self, name: str, share: float) -> Failure | None:
        if self._random.random() >= share:
            return None
        self._counts[name] += 1
        return self._random.choice(RETRYABLE)
