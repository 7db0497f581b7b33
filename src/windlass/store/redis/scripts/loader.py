"""Lua scripts: the text of a verb behind the parts that it uses, called by its digest.

A script is in the folder of the module that calls it; parts that several share are in the folders of scripts/parts.
Each file has a header, lines that begin with `--!`; a mistake in it is an error with file and line:

    -- claim: assign pending jobs of this queue to a runner.
    --! effect: writes          reads; writes, also at the server's memory limit; grows: stores jobs, refused near it
    --! scope: queue            queue (the default) or global: which keys it works on; `K.jobs` is the name of one
    --! store: any              checked (the default): it runs only on the caller's store; any: it checks that itself
    --! missing_queue: skip     create (the default): a queue that does not exist is created first; skip: no reply
    --! uses: record, claims    files in scripts/parts, which may use others
    --! keys: ready, due        keys that it names by `K[…]`
    --! lazy: assign_key_slots      functions of its parts that are compiled at their first use (trim.py)
"""

import re
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha1
from importlib.resources import files
from importlib.resources.abc import Traversable

import msgspec

from windlass.store.redis.records.keys import GLOBAL_KEYS, QUEUE_KEYS
from windlass.store.redis.scripts.trim import trimmed

_CHOICES: dict[str, tuple[str, ...]] = {
    "effect": ("reads", "writes", "grows"),
    "scope": ("queue", "global"),
    "store": ("checked", "any"),
    "missing_queue": ("create", "skip"),
}
_TOUCHED = re.compile(r"\bK\.(\w+)")
_CALLED = re.compile(r"redis\.call\('(\w+)'")  # a command tried by pcall may be refused
READS = frozenset(
    (
        *("EXISTS", "TYPE", "TIME", "PUBSUB", "INFO"),
        *("HGET", "HMGET", "HGETALL", "HLEN", "HEXISTS", "HKEYS", "HVALS", "HSCAN"),
        *("ZCARD", "ZCOUNT", "ZSCORE", "ZLEXCOUNT", "ZMSCORE", "ZRANGE", "ZRANGEBYLEX", "ZRANGEBYSCORE"),
        *("ZREVRANGE", "ZREVRANGEBYLEX", "ZREVRANGEBYSCORE"),
        *("SMEMBERS", "SISMEMBER", "SCARD", "SRANDMEMBER"),
    )
)
"""Commands that change nothing."""
REFUSED = "this user may not run every command of a script"
_PARTS = "parts/"


class ScriptError(Exception):
    """A Lua file does not match its header, or the header is wrong."""


class Header(msgspec.Struct, frozen=True):
    """What a Lua file declares."""

    effect: str = ""
    """Empty: a part, or a text that is no script of the store."""
    scope: str = "queue"
    store: str = "checked"
    missing_queue: str = "create"
    uses: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    lazy: tuple[str, ...] = ()


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
    return assemble(name, lua_texts()[name], clustered=clustered)


def script_names() -> list[str]:
    """Every script, in order."""
    return sorted(name for name in lua_texts() if not name.startswith(_PARTS))


@cache
def lua_texts() -> dict[str, str]:
    """Every Lua file by name, parts as `parts/name`. All are read now, since later no file descriptor may be free."""
    texts: dict[str, str] = {}
    for name, file in _lua_files(files("windlass.store.redis"), ""):
        if name in texts:
            raise ScriptError(f"{name}.lua: there are two files of this name")
        texts[name] = file.read_text()
    return texts


def _lua_files(folder: Traversable, prefix: str) -> Iterator[tuple[str, Traversable]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _lua_files(each, _PARTS if each.name == "parts" else prefix)
        elif each.name.endswith(".lua"):
            yield prefix + each.name.removesuffix(".lua"), each


def parse_header(path: str, text: str) -> Header:
    """The header of a file."""
    declared: dict[str, str | tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("--!"):
            word, _, rest = (each.strip() for each in line.removeprefix("--!").partition(":"))
            if word in declared:
                raise ScriptError(f"{path}:{number}: {word} is declared twice")
            declared[word] = _value(f"{path}:{number}", word, rest)
    return msgspec.convert(declared, Header)


def _value(where: str, word: str, rest: str) -> str | tuple[str, ...]:
    if word in _CHOICES:
        if rest not in _CHOICES[word]:
            raise ScriptError(f"{where}: {word} is {' or '.join(_CHOICES[word])}, not {rest!r}")
        return rest
    if word not in Header.__struct_fields__:
        raise ScriptError(f"{where}: unknown word {word!r}; there are {', '.join(Header.__struct_fields__)}")
    names = tuple(rest.replace(",", " ").split())
    for name in names:
        if word == "uses" and _PARTS + name not in lua_texts():
            raise ScriptError(f"{where}: no such part: {name}")
    return names


def assemble(name: str, body: str, *, clustered: bool = False) -> Script:
    """A script's text with all parts that it uses. It may read CLUSTERED: whether it runs on a cluster."""
    header, parts = parse_header(f"{name}.lua", body), dict[str, str]()
    if header.effect:
        _add_part(f"{header.scope}_call", parts)
        body = _start(header, body) + body
    for part in header.uses:
        _add_part(part, parts)
    text = trimmed(list(parts.values()), body, header.lazy)
    known = GLOBAL_KEYS if header.scope == "global" else QUEUE_KEYS
    touched = {*header.keys, *_TOUCHED.findall(text)}
    if unknown := touched - known.keys():
        raise ScriptError(f"{name}.lua: not a key of scope {header.scope}: {', '.join(sorted(unknown))}")
    keys = tuple(key for key in known if key in touched)
    text = _with_keys(text, keys)
    needs_queue = "WINDLASS_NEW_QUEUE" in text
    if "CLUSTERED" in text:
        text = f"local CLUSTERED = {str(clustered).lower()}\n{text}"
    writes = sorted(set(_CALLED.findall(text)) - READS)
    if header.effect and (header.effect == "reads") == bool(writes):
        raise ScriptError(f"{name}.lua: effect is {header.effect}, and it runs {', '.join(writes) or 'no write'}")
    if writes:
        text = _checking_rights(text, writes)
    return Script(
        name,
        text,
        sha1(text.encode()).hexdigest(),
        keys,
        is_global=header.scope == "global",
        grows=header.effect == "grows",
        needs_queue=needs_queue,
        creates_queue=header.missing_queue == "create",
        writes=bool(writes),
    )


def _start(header: Header, body: str) -> str:
    """What a script begins with; one that mostly finds nothing to write allows its writes itself, later."""
    start = "do local problem = check_store() if problem then return problem end end\n"
    allow = "allow_write_at_memory_limit()\n"
    return (start if header.store == "checked" else "") + (
        allow if header.effect == "writes" and allow not in body else ""
    )


def _add_part(name: str, parts: dict[str, str]) -> None:
    """Add the text of a part, after those that it uses."""
    text = lua_texts()[_PARTS + name]
    for used in parse_header(f"{_PARTS}{name}.lua", text).uses:
        if used not in parts:
            _add_part(used, parts)
    parts[name] = text


def _with_keys(text: str, keys: Sequence[str]) -> str:
    """With `KEYS[n]` instead of each key's name; a script that computes names of keys gets a table of them."""
    if "K[" in text:
        named = ", ".join(f"{key} = KEYS[{number}]" for number, key in enumerate(keys, 1))
        return f"local K = {{{named}}}\n{text}"
    return _TOUCHED.sub(lambda found: f"KEYS[{keys.index(found[1]) + 1}]", text)


def _checking_rights(text: str, writes: Sequence[str]) -> str:
    """Refuse the script at its start if its user may not run all of its commands.

    Redis 6 has no such check. There a script stops at the command that it may not run (duties/tidy.py).
    """
    asked = " and ".join(f"may('{command}', KEYS[1])" for command in writes)
    refused = f"return redis.error_reply('NOPERM {REFUSED}')"
    return f"do local may = redis.acl_check_cmd\nif may and not ({asked}) then {refused} end end\n{text}"
