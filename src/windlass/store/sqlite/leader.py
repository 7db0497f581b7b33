"""The coordinator's office: one holder at a time, and a term that grows with each."""

from windlass.store.records import Campaign
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.leases import feel_pulse


def campaign(db: Db, bid: Campaign) -> int | None:
    """Take the office if it is free, keep it if it is ours."""
    feel_pulse(db)
    now, boot = db.clock.since_boot(), db.clock.boot
    rows = db.rows("office")
    holder, term, held_boot, expires_at = rows[0] if rows else (None, 0, boot, 0)
    held = holder is not None and held_boot == boot and expires_at > now and db.vouchers.alive(holder) is not False
    if held and holder != bid.candidate:
        return None
    if not (held and holder == bid.candidate):
        term += 1
    values = {"holder": bid.candidate, "term": term, "boot": boot, "expires_at": now + bid.length}
    db.run("take_office", values)
    return int(term)


def resign(db: Db, candidate: str) -> None:
    """Leave the office, if it is ours."""
    db.run("resign", {"holder": candidate})
