"""What a look at all servers shows: their state, the rights of our user, and which store they hold."""

from typing import Any

import msgspec
from redis.exceptions import BusyLoadingError, ResponseError

from windlass.store.redis.connection.address import Kind
from windlass.store.redis.connection.errors import DRIVER_ERRORS, is_lost
from windlass.store.redis.connection.rights import Rights, question, read_rights
from windlass.store.redis.connection.server import Server
from windlass.store.redis.connection.server_info import is_loading
from windlass.store.redis.records.migrate import VERSION_FIELDS, MapVersion, read_version


class Inspection(msgspec.Struct, frozen=True):
    """The answers of all servers."""

    infos: list[Any]
    """`INFO` of each, or the error that it gave."""
    rights: Rights
    store: tuple[bytes | None, MapVersion] | None
    """Its mark and version. None: not asked, because rights are missing, or not to be had from a cluster now."""


async def inspect_servers(server: Server, seconds: float) -> Inspection:
    """Ask all of them; raises if none answers."""
    answers = await server.wire.each("INFO", seconds=seconds)
    infos = [_loading() if not isinstance(info, Exception) and is_loading(info) else info for info in answers]
    if all(isinstance(info, Exception) for info in infos):
        raise infos[0]
    rights = await ask_rights(server, seconds)
    refused = rights.objection(server.keys.prefix) is not None
    return Inspection(infos, rights, None if refused else await _ask_store(server, seconds))


def _loading() -> Exception:
    """While a server reads its file it answers INFO as if `appendonly` were off; other commands get this error."""
    return BusyLoadingError("LOADING Redis is loading the dataset in memory")


async def ask_rights(server: Server, seconds: float) -> Rights:
    """What this user lacks on any of the servers."""
    replies = list[Any]()
    asked = [question(server.keys), *([("WAIT", 0, 0)] if server.address.replicas else [])]
    for words in asked:
        try:
            replies += await server.wire.each(*words, seconds=seconds)
        except ResponseError as error:
            replies.append(error)
    return read_rights(replies)


async def _ask_store(server: Server, seconds: float) -> tuple[bytes | None, MapVersion] | None:
    """In a cluster the server of the global keys may be away; each queue of a known store has its mark too."""
    (key,) = server.keys.global_keys(("meta",))
    try:
        words = ("HMGET", key, "store", *VERSION_FIELDS)
        mark, *version = await server.wire.command(*words, seconds=seconds, patient=False)
    except DRIVER_ERRORS as error:
        if server.store_id is None or server.address.kind is not Kind.CLUSTER or not is_lost(error):
            raise
        return None
    return mark, read_version(*version)
