"""Which claims of this process are worth a look: their rows shrink as their jobs end."""

from collections.abc import Iterable, Sequence

from windlass.core.ids import JobId

ClaimKey = tuple[str, int]
"""A runner and the number of its claim."""
SHARE = 4
"""A row is looked at when 3/4 of its jobs have ended, so that a job is looked up at most twice."""


class OpenClaims:
    """Claims with jobs that have not ended, as far as this process knows.

    Only a hint for `shorten_claims`, which looks at the jobs themselves: a claim that is missing here is left to the
    search for dead runners.
    """

    def __init__(self) -> None:
        self._claims: dict[JobId, ClaimKey] = {}
        self._sizes: dict[ClaimKey, list[int]] = {}
        """Jobs in the row, and those of them that have not ended."""
        self._due: dict[ClaimKey, None] = {}

    def take(self, runner: str, claim: int, jobs: Sequence[JobId]) -> None:
        """Jobs were claimed; one claim may take several times."""
        if jobs:
            key = (runner, claim)
            self._claims.update(dict.fromkeys(jobs, key))
            size = self._sizes.setdefault(key, [0, 0])
            size[0] += len(jobs)
            size[1] += len(jobs)

    def end(self, jobs: Iterable[JobId]) -> None:
        """Jobs are not running any more."""
        for job in jobs:
            key = self._claims.pop(job, None)
            if key is not None:
                size = self._sizes[key]
                size[1] -= 1
                if size[1] * SHARE <= size[0]:
                    self._due[key] = None

    def due(self, runner: str) -> list[int]:
        """The claims of a runner that are worth a look."""
        return [claim for holder, claim in self._due if holder == runner]

    def shortened(self, runner: str, claims: Iterable[int]) -> None:
        """Their rows have the jobs that run, or are gone."""
        for claim in claims:
            key = (runner, claim)
            if self._due.pop(key, key) is None:
                left = self._sizes[key][1]
                if left:
                    self._sizes[key] = [left, left]
                else:
                    del self._sizes[key]
