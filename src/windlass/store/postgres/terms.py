"""Terms: what a claim from a ruled queue must obey, and where it may begin, as it stands now."""

from functools import lru_cache

import msgspec

from windlass.core.moments import Micros
from windlass.core.queue import QueueSettings, merge
from windlass.core.rate import Bucket, Rate, full, refilled
from windlass.store.postgres.tolls import rate_of

_settings = msgspec.json.Decoder(QueueSettings)


class Terms(msgspec.Struct, frozen=True):
    """A row of ruled.sql."""

    leased: bool
    again: bool
    most: int | None
    rate_limit: str | None
    fair: bool
    rated: bool
    declared: str
    changed: str
    slots: int
    """Of the limit, the runner's own."""
    given: int
    """Of the limit, all runners'."""
    credit: int | None
    period: Micros | None
    at: Micros | None
    returns: int
    urgencies: list[int]
    floors: list[Micros]
    now: Micros
    marked: bool
    """Whether a key has changed, and somebody in line may go in."""
    behind: int

    @property
    def rate(self) -> Rate | None:
        """Of the queue."""
        return rate_of(self.rate_limit)

    @property
    def plain(self) -> bool:
        """Whether there is nothing to obey any more."""
        return self.most is None and self.rate_limit is None and not self.fair and not self.rated

    @property
    def weights(self) -> dict[str, float]:
        """Of tenants."""
        return _weights(self.declared, self.changed) if self.fair else {}

    def bucket(self, rate: Rate) -> Bucket:
        """What the queue's gate holds, at a look without a lock."""
        if self.credit is None or self.period is None or self.at is None:
            return full(rate, self.now)
        return refilled(Bucket(self.credit, self.period, self.at), rate, self.now)


@lru_cache(maxsize=1000)
def _weights(declared: str, changed: str) -> dict[str, float]:
    return merge(_settings.decode(declared), _settings.decode(changed)).weights
