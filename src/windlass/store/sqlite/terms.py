"""Terms: what claims must obey in a queue that is not plain."""

from functools import lru_cache

import msgspec

from windlass.core.moments import Micros
from windlass.core.queue import QueueSettings, merge
from windlass.core.rate import Rate, parse_rate
from windlass.store.sqlite.db import Db

_settings = msgspec.json.Decoder(QueueSettings)


class Terms(msgspec.Struct, frozen=True):
    """The rules of one queue that concern its claims."""

    paused: bool
    max_concurrency: int | None
    rate: Rate | None
    fair: bool
    rated: bool
    """Whether it has, or had, jobs whose key has a rate."""
    weights: dict[str, float]

    @property
    def plain(self) -> bool:
        """Whether jobs are taken as they come, once it is clear how many."""
        return self.rate is None and not self.fair and not self.rated


def terms_of(db: Db, now: Micros) -> dict[str, Terms]:
    """The queues that are not plain, or paused: a look at a small table."""
    return {row[0]: _terms(*row[1:]) for row in db.rows("terms", {"now": now})}


@lru_cache(maxsize=1000)
def _terms(
    paused: int, most: int | None, rate: str | None, fair: int, rated: int, declared: str | None, changed: str | None
) -> Terms:
    weights = merge(_settings.decode(declared), _settings.decode(changed)).weights if declared and changed else {}
    return Terms(bool(paused), most, rate_of(rate), bool(fair), bool(rated), weights)


@lru_cache(maxsize=1000)
def rate_of(text: str | None) -> Rate | None:
    """A rate as it is kept."""
    return None if text is None else parse_rate(text, "rate")
