"""Remove everything under a prefix: for those who made one for a while."""

from windlass.store.redis.access import LONGEST_CALL
from windlass.store.redis.address import Address
from windlass.store.redis.keys import OFFICE_KEYS, QUEUE_KEYS
from windlass.store.redis.server import Server
from windlass.store.redis.trouble import TROUBLE, translate


async def discard(address: Address, shown: str) -> None:
    """Drop the keys, if they are there; whoever still works on them is told that the store was emptied."""
    server = Server(address, shown, None)
    (names,) = server.keys.of_office(("queues",))
    try:
        for queue in await server.wire.command("SMEMBERS", names, seconds=LONGEST_CALL):
            keys = server.keys.of_queue(queue.decode(), tuple(QUEUE_KEYS))
            await server.wire.command("UNLINK", *keys, seconds=LONGEST_CALL)
        await server.wire.command("UNLINK", *server.keys.of_office(tuple(OFFICE_KEYS)), seconds=LONGEST_CALL)
    except TROUBLE as error:
        raise translate(error, shown) from error
    finally:
        await server.wire.close()
