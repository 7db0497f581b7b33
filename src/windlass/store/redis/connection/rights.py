"""Rights: whether this user may run every command that scripts use. A script that is refused one stops half-way.

Each command is tried by a script, in a way that changes nothing: on a key that is not there, or so that it is
refused for another reason. The server checks rights before anything else.
"""

import re
from collections.abc import Sequence
from typing import Any

import msgspec
from redis.exceptions import ResponseError

from windlass.store.redis.connection.driver import Word
from windlass.store.redis.records.keys import KeyMap

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
    "ZSCORE": ("x",),
    **dict.fromkeys(("ZCOUNT", "ZRANGE", "ZRANGEBYSCORE", "ZREVRANGE"), ("0", "0")),
    **dict.fromkeys(("ZLEXCOUNT", "ZRANGEBYLEX", "ZREMRANGEBYLEX"), ("-", "+")),
    "ZREVRANGEBYLEX": ("+", "-"),
}
"""Commands, with the words after the key: HSET has no value for its second field, HINCRBY no number."""
_TEXT = """
local prefix, tried = ARGV[1], cmsgpack.unpack(ARGV[2])
local refused = {}
local function try(...)
  local said = redis.pcall(...)
  local err = type(said) == 'table' and said.err
  if err and (string.find(err, 'user executing the script') or string.find(err, 'NOPERM')) then
    refused[#refused + 1] = {(...), err}
  end
end
for command, words in pairs(tried) do try(command, prefix .. ':{*}:none', unpack(words)) end
try('TIME')
-- A set can hold one member only after it was made: this key is a hash, if there is a store.
local exists = redis.pcall('EXISTS', prefix .. ':{*}:meta')
if exists == 1 then try('SADD', prefix .. ':{*}:meta', 'x') end
try('PUBLISH', prefix .. ':{*}:hints', '')
return refused
"""

_REFUSED = re.compile(r"no permissions to run the '([\w|]+)' command")
_encode = msgspec.msgpack.encode


class Rights(msgspec.Struct, frozen=True):
    """What a user lacks."""

    commands: tuple[str, ...] = ()
    """That scripts may not run."""
    keys: bool = True
    """Whether it may use the keys of the prefix."""
    hints: bool = True
    """Whether it may publish on the channels of the prefix: nothing but promptness depends on that."""

    def objection(self, prefix: str) -> str | None:
        """Why no script may be started, and the rule that is missing."""
        if not self.keys:
            missing = [f"~{prefix}:*"]
        elif self.commands:
            missing = [f"+{command.lower()}" for command in self.commands]
        else:
            return None
        return (
            "this user may not do all that scripts do, and one that is refused a command stops half-way: say ACL "
            f"SETUSER name {' '.join(missing)}; see the recipe for a user in the guide to Redis"
        )

    def remark(self, prefix: str) -> str | None:
        """What is missing and can be done without."""
        if self.hints:
            return None
        return (
            "this user may not publish: workers find new jobs when they look, up to a second later; say ACL SETUSER "
            f"name +publish &{prefix}:*"
        )


def question(keys: KeyMap) -> tuple[Word, ...]:
    """The command that every server is asked."""
    return "EVAL", _TEXT, 0, keys.prefix, _encode(TRIED)


def read_rights(replies: Sequence[Any]) -> Rights:
    """What all servers say, together. An error that is not about rights is not judged, nor what is no list."""
    refused = [entry for reply in replies if isinstance(reply, list) for entry in reply]
    told = [(command.decode(), said.decode()) for command, said in refused]
    lacking = {command for command, said in told if "key" not in said and command != "PUBLISH"}
    lacking.update(found[1] for reply in replies if (found := _refused_itself(reply)))
    return Rights(
        tuple(sorted(lacking)),
        keys=not any("key" in said for _, said in told),
        hints=not any(command == "PUBLISH" for command, _ in told),
    )


def _refused_itself(reply: Any) -> re.Match[str] | None:
    return _REFUSED.search(str(reply)) if isinstance(reply, ResponseError) else None
