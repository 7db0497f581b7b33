"""Remove a schema and all that is in it: for those who made one for a while."""

from windlass.store.postgres.access import CONNECT_SECONDS
from windlass.store.postgres.address import Address
from windlass.store.postgres.session import connect
from windlass.store.postgres.trouble import TROUBLE, translate


async def discard(address: Address, shown: str) -> None:
    """Drop the tables, if they are there; whoever still works on them waits, and then finds nothing."""
    try:
        session = await connect(address.dsn, CONNECT_SECONDS, pooled=None)
        try:
            await session.script(f'DROP SCHEMA IF EXISTS "{address.schema}" CASCADE')
        finally:
            await session.close()
    except TROUBLE as error:
        raise translate(error, shown) from error
