"""Inspects all servers: their state, the rights of this user, and which store they hold."""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from redis.exceptions import BusyLoadingError, ResponseError

from windlass.store.redis.connection.address import Kind
from windlass.store.redis.connection.driver import Word
from windlass.store.redis.connection.errors import DRIVER_ERRORS, is_lost
from windlass.store.redis.connection.server import Server
from windlass.store.redis.connection.server_watch import is_loading
from windlass.store.redis.records.keys import DEFAULT_PREFIX, KeyMap
from windlass.store.redis.records.migrate import VERSION_FIELDS, MapVersion, read_version

CONNECTION = ("hello", "auth", "ping", "info", "time", "wait")
SCRIPTS = ("eval", "evalsha")
HINTS = ("publish", "subscribe", "unsubscribe", "pubsub|numsub")
SHARDED = ("spublish", "ssubscribe", "sunsubscribe", "pubsub|shardnumsub")
"""Hints on a cluster of Redis 7 or later: older servers do not know these, and refuse a rule that names them."""
CLUSTER = ("cluster|slots", "asking")
KEYS = (
    *("exists", "del", "unlink", "type"),
    *("hget", "hset", "hsetnx", "hdel", "hmget", "hgetall", "hincrby", "hlen", "hexists", "hkeys", "hvals", "hscan"),
    *("zadd", "zrem", "zcard", "zcount", "zscore", "zmscore", "zlexcount"),
    *("zrange", "zrangebylex", "zrangebyscore"),
    *("zrevrange", "zrevrangebylex", "zrevrangebyscore", "zremrangebyscore", "zremrangebylex", "zremrangebyrank"),
    *("sadd", "srem", "smembers", "sismember", "scard", "spop", "srandmember"),
)
COMMANDS = (*CONNECTION, *SCRIPTS, *HINTS, *CLUSTER, *KEYS)


def acl_rules(prefix: str = DEFAULT_PREFIX, *, sharded: bool = False) -> list[str]:
    """The words after ACL SETUSER name on >password: keys and channels of one prefix, and the commands.

    `sharded` is for clusters of Redis 7 or later.
    """
    rules = ["resetkeys", f"~{prefix}:*", "resetchannels", f"&{prefix}:*"]
    return [*rules, "-@all", *(f"+{command}" for command in (*COMMANDS, *(SHARDED if sharded else ())))]


TRIED: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("EXISTS", "DEL", "UNLINK", "HGETALL", "HKEYS", "HLEN", "HVALS"), ()),
    **dict.fromkeys(("HDEL", "HEXISTS", "HGET", "HMGET"), ("x",)),
    "HSCAN": ("0",),
    "HSET": ("x", "x", "x"),
    "HINCRBY": ("x", "x"),
    "SPOP": (),
    "SRANDMEMBER": (),
    "SREM": ("x",),
    "ZADD": ("XX", "0", "x"),
    "ZCARD": (),
    "ZREM": ("x",),
    **dict.fromkeys(("ZSCORE", "ZMSCORE"), ("x",)),
    **dict.fromkeys(("ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZREVRANGE", "ZREVRANGEBYSCORE"), ("0", "0")),
    **dict.fromkeys(("ZLEXCOUNT", "ZRANGEBYLEX", "ZREMRANGEBYLEX"), ("-", "+")),
    "ZREVRANGEBYLEX": ("+", "-"),
}
"""Commands, and arguments with which they fail and change nothing: HSET lacks a value, HINCRBY a number."""
_TEXT = """
local prefix, tried = ARGV[1], cmsgpack.unpack(ARGV[2])
local refused = {}
local function try(...)
  local reply = redis.pcall(...)
  local err = type(reply) == 'table' and reply.err
  if err and (string.find(err, 'user executing the script') or string.find(err, 'NOPERM')) then
    refused[#refused + 1] = {(...), err}
  end
end
for command, words in pairs(tried) do try(command, prefix .. ':{*}:none', unpack(words)) end
try('TIME')
-- `meta` is a hash, if there is a store: SADD fails there without a change.
local exists = redis.pcall('EXISTS', prefix .. ':{*}:meta')
if exists == 1 then try('SADD', prefix .. ':{*}:meta', 'x') end
try('PUBLISH', prefix .. ':{*}:hints', '')
return refused
"""

_REFUSED = re.compile(r"no permissions to run the '([\w|]+)' command")
_encode = msgspec.msgpack.encode


class Rights(msgspec.Struct, frozen=True):
    """The rights that a user lacks."""

    commands: tuple[str, ...] = ()
    """Commands that scripts may not run."""
    keys: bool = True
    """Whether it may use the keys of the prefix."""
    hints: bool = True
    """Whether it may publish on the channels of the prefix; without that, polling finds new jobs."""

    def why_refused(self, prefix: str) -> str | None:
        """Why no script may be started, and the rule that is missing."""
        if not self.keys:
            missing = [f"~{prefix}:*"]
        elif self.commands:
            missing = [f"+{command.lower()}" for command in self.commands]
        else:
            return None
        return (
            "this user lacks rights that scripts need, and a script that is refused a command stops half-way: run "
            f"ACL SETUSER name {' '.join(missing)}; see the recipe for a user in the guide to Redis"
        )

    def warning(self, prefix: str) -> str | None:
        """A missing right that is not required."""
        if self.hints:
            return None
        return (
            "this user may not publish: workers find new jobs by polling, up to a second later; run ACL SETUSER "
            f"name +publish &{prefix}:*"
        )


def rights_command(keys: KeyMap) -> tuple[Word, ...]:
    """The command that tests the rights on a server."""
    return "EVAL", _TEXT, 0, keys.prefix, _encode(TRIED)


def read_rights(replies: Sequence[Any]) -> Rights:
    """The rights missing on any server. Errors that are not about rights are ignored."""
    refused = [entry for reply in replies if isinstance(reply, list) for entry in reply]
    errors = [(command.decode(), message.decode()) for command, message in refused]
    lacking = {command for command, message in errors if "key" not in message and command != "PUBLISH"}
    lacking.update(found[1] for reply in replies if (found := _refused_itself(reply)))
    return Rights(
        tuple(sorted(lacking)),
        keys=not any("key" in message for _, message in errors),
        hints=not any(command == "PUBLISH" for command, _ in errors),
    )


def _refused_itself(reply: Any) -> re.Match[str] | None:
    return _REFUSED.search(str(reply)) if isinstance(reply, ResponseError) else None


class Inspection(msgspec.Struct, frozen=True):
    """What all servers answered."""

    infos: list[Any]
    """`INFO` of each server, or its error."""
    rights: Rights
    store: tuple[bytes | None, MapVersion] | None
    """The id and version of the store. None: not read, because rights are missing or its server is away."""


async def inspect_servers(server: Server, seconds: float) -> Inspection:
    """Inspect all servers; raises if none answers."""
    answers = await server.wire.each("INFO", seconds=seconds)
    infos = [_loading() if not isinstance(info, Exception) and is_loading(info) else info for info in answers]
    if all(isinstance(info, Exception) for info in infos):
        raise infos[0]
    rights = await ask_rights(server, seconds)
    refused = rights.why_refused(server.keys.prefix) is not None
    return Inspection(infos, rights, None if refused else await _ask_store(server, seconds))


def _loading() -> Exception:
    """While a server loads its file, INFO shows `appendonly` off; other commands get this error."""
    return BusyLoadingError("LOADING Redis is loading the dataset in memory")


async def ask_rights(server: Server, seconds: float) -> Rights:
    """What this user lacks on any of the servers."""
    replies = list[Any]()
    asked = [rights_command(server.keys), *([("WAIT", 0, 0)] if server.address.replicas else [])]
    for words in asked:
        try:
            replies += await server.wire.each(*words, seconds=seconds)
        except ResponseError as error:
            replies.append(error)
    return read_rights(replies)


async def _ask_store(server: Server, seconds: float) -> tuple[bytes | None, MapVersion] | None:
    """In a cluster the server of the global keys may be away; each queue of a known store has its id too."""
    (key,) = server.keys.global_keys(("meta",))
    try:
        words = ("HMGET", key, "store", *VERSION_FIELDS)
        store_id, *version = await server.wire.command(*words, seconds=seconds, patient=False)
    except DRIVER_ERRORS as error:
        if server.store_id is None or server.address.kind is not Kind.CLUSTER or not is_lost(error):
            raise
        return None
    return store_id, read_version(*version)
