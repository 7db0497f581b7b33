"""raise_buckets: add buckets to a store that is in use.

The rows for the new buckets are added before the function that assigns jobs to them is replaced, so that every
enqueue finds what it needs. Existing jobs keep their buckets. Each statement can be repeated after a crash.
"""

from windlass.errors import InvalidOption
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.conflicts import Conflicts
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Db, Texts, in_schema
from windlass.store.postgres.connection.profile import MAX_BUCKETS
from windlass.store.postgres.connection.repeated_reads import repeat
from windlass.store.postgres.connection.server import CONNECT_SECONDS
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.connection.trouble import TROUBLE, translate
from windlass.store.postgres.migrate import migrations
from windlass.store.postgres.migrate_stepwise import run_repeatable, statements_in

_FUNCTION = "FUNCTION windlass.bucket_of"


async def raise_buckets(address: Address, shown: str, buckets: int) -> int:
    """Raise the number of buckets; returns how many there were."""
    if not address.profile.has_buckets:
        raise InvalidOption("buckets", "exist on yugabyte:// only")
    if not 1 <= buckets <= MAX_BUCKETS:
        raise InvalidOption("buckets", f"is a number from 1 to {MAX_BUCKETS}, not {buckets}")
    try:
        session = await repeat(
            lambda: connect(address.dsn, CONNECT_SECONDS, pooled=None, profile=address.profile), Conflicts()
        )
        try:
            return await _raise(session, Texts(address.schema, None, address.profile), buckets)
        finally:
            await session.close()
    except TROUBLE as error:
        raise translate(error, shown) from error


async def learn_buckets(db: Db) -> None:
    """Read the number of buckets, which another process may have raised."""
    db.buckets = (await db.rows("number_of_buckets"))[0][0]


async def _raise(session: Session, texts: Texts, buckets: int) -> int:
    db, conflicts = Db(session, texts), Conflicts()
    ((before,),) = await repeat(lambda: db.rows("number_of_buckets"), conflicts)
    if buckets < before:
        raise InvalidOption("buckets", f"can only be raised: there are {before}")
    await repeat(lambda: db.run("raise_number_of_buckets", {"buckets": buckets}), conflicts)
    text = migrations(texts.profile)[0].text
    function = next(each for each in statements_in(text, buckets, cluster=False) if _FUNCTION in each)
    await run_repeatable(session, in_schema(function, texts.schema))
    return int(before)
