"""The coordinator's office: one holder at a time, and a term that grows with each."""

from windlass.store.records import Campaign
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.leases import feel_pulse


def is_taken(db: Db, bid: Campaign) -> bool:
    """A look without a lock: whether somebody else holds the office."""
    return office_holder(db) not in (None, bid.candidate)


def campaign(db: Db, bid: Campaign) -> int | None:
    """Take the office if it is free, keep it if it is ours."""
    feel_pulse(db)
    holder = office_holder(db)
    if holder not in (None, bid.candidate):
        return None
    rows = db.rows("office")
    term: int = (rows[0][1] if rows else 0) + (holder is None)
    expires_at = db.clock.since_boot() + bid.length
    db.run("take_office", {"holder": bid.candidate, "term": term, "boot": db.clock.boot, "expires_at": expires_at})
    return term


def office_holder(db: Db) -> str | None:
    """Who holds the office now: not who is dead, whose time is over, or who held it before the last boot."""
    for holder, _, boot, expires_at in db.rows("office"):
        current = boot == db.clock.boot and expires_at > db.clock.since_boot()
        if holder is not None and current and db.vouchers.alive(holder) is not False:
            return str(holder)
    return None


def resign(db: Db, candidate: str) -> None:
    """Leave the office, if it is ours."""
    db.run("resign", {"holder": candidate})
