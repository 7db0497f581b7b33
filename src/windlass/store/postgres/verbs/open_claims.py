"""Which claims of this process have ended jobs, so that their rows can be shortened or deleted."""

from collections.abc import Iterable, Mapping, Sequence

from windlass.core.ids import JobId

ClaimKey = tuple[str, int]
"""A runner and the number of its claim."""
SHARE = 4
"""A row is shortened when 3/4 of its jobs have ended, so that each job is read at most twice for it."""
MAX_JOBS = 100_000
"""Jobs that are remembered. If there are more, other processes have ended some, such as those of REST workers."""


class OpenClaims:
    """Claims with jobs that have not ended, as far as this process knows.

    Only a hint for `shorten_claims`, which reads the jobs itself. Once a minute the coordinator deletes rows that
    were forgotten here.
    """

    def __init__(self) -> None:
        self._claims: dict[JobId, ClaimKey] = {}
        self._sizes: dict[ClaimKey, list[int]] = {}
        """The number of jobs in the row, and of those that have not ended."""
        self._due: dict[ClaimKey, None] = {}

    def take(self, runner: str, claim: int, jobs: Sequence[JobId]) -> None:
        """Record claimed jobs. One claim may take jobs several times, and a repeated claim reports the same again."""
        key = (runner, claim)
        jobs = [job for job in jobs if self._claims.get(job) != key]
        if jobs:
            if len(self._claims) >= MAX_JOBS:
                self._claims, self._sizes, self._due = {}, {}, {}
            self._claims.update(dict.fromkeys(jobs, key))
            size = self._sizes.setdefault(key, [0, 0])
            size[0] += len(jobs)
            size[1] += len(jobs)

    def end(self, jobs: Iterable[JobId]) -> None:
        """Record jobs that are not running any more."""
        for job in jobs:
            key = self._claims.pop(job, None)
            size = None if key is None else self._sizes.get(key)
            if key is not None and size is not None:
                size[1] -= 1
                if size[1] * SHARE <= size[0]:
                    self._due[key] = None

    def due(self, runner: str) -> dict[int, int]:
        """The claims of a runner whose rows can be shortened, and how many of their jobs have not ended."""
        return {key[1]: self._sizes[key][1] for key in self._due if key[0] == runner}

    def shortened(self, runner: str, claims: Mapping[int, int]) -> None:
        """Record that rows were shortened to this number of jobs; a row of which jobs ended meanwhile stays due."""
        for claim, left in claims.items():
            key = (runner, claim)
            size = self._sizes.get(key)
            if size is None:
                continue
            size[0] = left
            if size[1] == left:
                self._due.pop(key, None)
                if not left:
                    del self._sizes[key]

    def forget(self, runner: str, claims: Iterable[int]) -> None:
        """Forget claims after a lost reply: the server may still lock their rows, for which a repeat would wait."""
        for claim in claims:
            self._due.pop((runner, claim), None)
            self._sizes.pop((runner, claim), None)
