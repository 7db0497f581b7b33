"""Remove everything under a prefix."""

from windlass.store.redis.connection.access import MAX_CALL
from windlass.store.redis.connection.address import Address
from windlass.store.redis.connection.errors import DRIVER_ERRORS, translate
from windlass.store.redis.connection.server import Server
from windlass.store.redis.records.keys import GLOBAL_KEYS, QUEUE_KEYS


async def discard(address: Address, shown: str) -> None:
    """Drop the keys; processes that still use them learn that the store was emptied."""
    server = Server(address, shown, None)
    (names,) = server.keys.global_keys(("queues",))
    try:
        for queue in await server.wire.command("SMEMBERS", names, seconds=MAX_CALL):
            keys = server.keys.of_queue(queue.decode(), tuple(QUEUE_KEYS))
            await server.wire.command("UNLINK", *keys, seconds=MAX_CALL)
        await server.wire.command("UNLINK", *server.keys.global_keys(tuple(GLOBAL_KEYS)), seconds=MAX_CALL)
    except DRIVER_ERRORS as error:
        raise translate(error, shown) from error
    finally:
        await server.wire.close()
