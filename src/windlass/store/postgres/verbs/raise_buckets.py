"""raise_buckets: more buckets for a store that works.

Rows for the new buckets come first, and only then the function that puts jobs there: an enqueue finds what it needs.
Jobs stay where they are. Each statement can be repeated after a crash.
"""

from windlass.errors import InvalidOption, StoreUnavailable
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Db, Texts, in_schema
from windlass.store.postgres.connection.profile import MAX_BUCKETS
from windlass.store.postgres.connection.server import CONNECT_SECONDS
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.connection.trouble import TROUBLE, is_conflict, translate
from windlass.store.postgres.migrate import migrations
from windlass.store.postgres.migrate_stepwise import run_repeatable, statements_in

MAX_TRIES = 20
_FUNCTION = "FUNCTION windlass.bucket_of"


async def raise_buckets(address: Address, shown: str, buckets: int) -> int:
    """Raise the number of buckets; returns how many there were."""
    if not address.profile.has_buckets:
        raise InvalidOption("buckets", "exist on yugabyte:// only")
    if not 1 <= buckets <= MAX_BUCKETS:
        raise InvalidOption("buckets", f"is a number from 1 to {MAX_BUCKETS}, not {buckets}")
    try:
        session = await connect(address.dsn, CONNECT_SECONDS, pooled=None, profile=address.profile)
        try:
            return await _raise(session, Texts(address.schema, None, address.profile), buckets)
        finally:
            await session.close()
    except TROUBLE as error:
        raise translate(error, shown) from error


async def learn_buckets(db: Db) -> None:
    """Another process may have raised their number."""
    db.buckets = (await db.rows("number_of_buckets"))[0][0]


async def _raise(session: Session, texts: Texts, buckets: int) -> int:
    db = Db(session, texts)
    ((before,),) = await db.rows("number_of_buckets")
    if buckets < before:
        raise InvalidOption("buckets", f"can only be raised: there are {before}")
    await _repeat(db, "raise_number_of_buckets", {"buckets": buckets})
    text = migrations(texts.profile)[0].text
    function = next(each for each in statements_in(text, buckets, cluster=False) if _FUNCTION in each)
    await run_repeatable(session, in_schema(function, texts.schema))
    return int(before)


async def _repeat(db: Db, name: str, values: dict[str, int]) -> None:
    for _ in range(MAX_TRIES):
        try:
            await db.run(name, values)
        except TROUBLE as error:
            if not is_conflict(error):
                raise
        else:
            return
    raise StoreUnavailable(f"other transactions kept {name} from its rows; try again")
