"""Lua scripts: the text of a verb behind the parts that it uses, called by its digest.

A script is in the folder of the module that calls it; parts that several share are in scripts/parts. What the
script does not need of its parts is left out, and so are the keys that only that would touch (trim.py).
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha1
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

from windlass.store.redis.scripts.header import Header, ScriptError, parse_header
from windlass.store.redis.scripts.trim import trimmed

_TOUCHED = re.compile(r"\bK\.(\w+)")
_CALLED = re.compile(r"redis\.call\('(\w+)'")  # a command tried by pcall may be refused
READS = frozenset(
    (
        *("EXISTS", "TYPE", "TIME", "PUBSUB", "INFO"),
        *("HGET", "HMGET", "HGETALL", "HLEN", "HEXISTS", "HKEYS", "HVALS", "HSCAN"),
        *("ZCARD", "ZCOUNT", "ZSCORE", "ZLEXCOUNT", "ZRANGE", "ZRANGEBYLEX", "ZRANGEBYSCORE"),
        *("ZREVRANGE", "ZREVRANGEBYLEX", "ZREVRANGEBYSCORE"),
        *("SMEMBERS", "SISMEMBER", "SCARD", "SRANDMEMBER"),
    )
)
"""Commands that change nothing."""
REFUSED = "this user may not run every command of a script"
_PARTS = "parts/"


class Script(msgspec.Struct, frozen=True):
    """A text for the server, called by its digest."""

    name: str
    text: str
    sha: str
    keys: tuple[str, ...]
    is_global: bool
    """Whether it works on the keys that belong to no queue."""
    grows: bool
    """Whether it stores new jobs: refused near the server's memory limit."""
    needs_queue: bool
    """Whether it replies only where the queue exists."""
    creates_queue: bool
    """Whether a queue that does not exist is created for it."""
    writes: bool
    """Whether it may change anything."""


@cache
def script(name: str, *, clustered: bool = False) -> Script:
    """The verb's script, assembled once."""
    return assemble(name, _texts()[name], clustered=clustered)


@cache
def _texts() -> dict[str, str]:
    """Every Lua file, by name; parts as `parts/name`. Read at once: later there may be no free file descriptor."""
    texts: dict[str, str] = {}
    for name, file in _lua_files(files("windlass.store.redis")):
        if name in texts:
            raise ScriptError(f"{name}.lua: there are two files of this name")
        texts[name] = file.read_text()
    return texts


def _lua_files(folder: Traversable) -> Iterator[tuple[str, Traversable]]:
    prefix = _PARTS if folder.name == "parts" else ""
    for each in folder.iterdir():
        if each.is_dir():
            yield from _lua_files(each)
        elif each.name.endswith(".lua"):
            yield prefix + each.name.removesuffix(".lua"), each


def assemble(name: str, body: str, *, clustered: bool = False) -> Script:
    """A script's own text with all that it uses. It may read CLUSTERED, whether it runs on a cluster."""
    own, parts = _header(name, body), dict[str, str]()
    headers = [own, *_add_parts(own, parts)]
    declared = {key for header in headers for key in header.keys}
    if unknown := declared - own.known_keys.keys():
        raise ScriptError(f"{name}.lua: not a key of scope {own.scope}: {', '.join(sorted(unknown))}")
    text = trimmed(list(parts.values()), body, own.lazy)
    touched = declared if "K[" in text else set(_TOUCHED.findall(text))
    if undeclared := touched - declared:
        raise ScriptError(f"{name}.lua: not declared: {', '.join(sorted(undeclared))}")
    keys = tuple(key for key in own.known_keys if key in touched)
    text = _with_keys(text, keys)
    needs_queue = "WINDLASS_NEW_QUEUE" in text
    if "CLUSTERED" in text:
        text = f"local CLUSTERED = {str(clustered).lower()}\n{text}"
    writes = sorted(set(_CALLED.findall(text)) - READS)
    _check_effect(name, own, text, writes)
    if writes:
        text = _checking_rights(text, writes)
    return Script(
        name,
        text,
        sha1(text.encode()).hexdigest(),
        keys,
        is_global=own.scope == "global",
        grows=own.memory == "grows",
        needs_queue=needs_queue,
        creates_queue=own.missing_queue == "create",
        writes=bool(writes),
    )


def _header(name: str, text: str) -> Header:
    parts = [each.removeprefix(_PARTS) for each in _texts() if each.startswith(_PARTS)]
    return parse_header(f"{name}.lua", text, parts)


def _check_effect(name: str, header: Header, text: str, writes: Sequence[str]) -> None:
    """A script that writes must say so, and whether it may run at the server's memory limit."""
    if header.effect and (header.effect == "writes") != bool(writes):
        raise ScriptError(f"{name}.lua: effect is {header.effect}, and it runs {', '.join(writes) or 'no write'}")
    if header.memory and (header.memory == "any") != ("allow_write_at_memory_limit()" in text):
        raise ScriptError(f"{name}.lua: memory is {header.memory}, and its calls say otherwise")


def _add_parts(header: Header, parts: dict[str, str]) -> Iterator[Header]:
    """Add the texts of what it uses, each after what that uses; their headers."""
    for name in header.uses:
        if name not in parts:
            part = _texts()[_PARTS + name]
            used = _header(_PARTS + name, part)
            yield used
            yield from _add_parts(used, parts)
            parts[name] = part


def _with_keys(text: str, keys: Sequence[str]) -> str:
    """With `KEYS[n]` instead of each key's name; a script that computes names of keys gets a table of them."""
    if "K[" in text:
        named = ", ".join(f"{key} = KEYS[{number}]" for number, key in enumerate(keys, 1))
        return f"local K = {{{named}}}\n{text}"
    return _TOUCHED.sub(lambda found: f"KEYS[{keys.index(found[1]) + 1}]", text)


def _checking_rights(text: str, writes: Sequence[str]) -> str:
    """Refused as a whole if its user may not run each of these: rights never change while a script runs.

    Redis 6 has no such check. There a script stops at the command that it may not run (duties/repair.py).
    """
    asked = " and ".join(f"may('{command}', KEYS[1])" for command in writes)
    refused = f"return redis.error_reply('NOPERM {REFUSED}')"
    return f"do local may = redis.acl_check_cmd\nif may and not ({asked}) then {refused} end end\n{text}"


def lua_texts() -> dict[str, str]:
    """Every Lua file, by name: scripts as `claim`, parts as `parts/record`."""
    return dict(_texts())


def script_names() -> list[str]:
    """Every script, in order."""
    return sorted(name for name in _texts() if not name.startswith(_PARTS))
