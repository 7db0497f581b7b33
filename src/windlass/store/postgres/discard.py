"""Drop a schema, for temporary stores."""

from windlass.store.postgres.connection.access import CONNECT_SECONDS
from windlass.store.postgres.connection.address import Address
from windlass.store.postgres.connection.connect import connect
from windlass.store.postgres.connection.db import Texts
from windlass.store.postgres.connection.session import Session
from windlass.store.postgres.connection.trouble import TROUBLE, translate
from windlass.store.postgres.migrate import Obstacle, with_locks


async def discard(address: Address, shown: str) -> None:
    """Drop the schema if it exists."""
    drop = f'DROP SCHEMA IF EXISTS "{address.schema}" CASCADE'
    try:
        session = await connect(address.dsn, CONNECT_SECONDS, pooled=None)
        try:
            texts = Texts(address.schema, None)
            await with_locks(session, texts, Session.transaction, lambda: session.script(drop), Obstacle())
        finally:
            await session.close()
    except TROUBLE as error:
        raise translate(error, shown) from error
