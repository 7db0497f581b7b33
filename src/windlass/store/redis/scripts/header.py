"""The header of a Lua file: what it needs and what it does, in lines that begin with `--!`.

    -- claim: assign pending jobs of this queue to a runner.
    --! effect: writes          reads or writes; scripts only
    --! memory: any             any: also runs at the server's memory limit; grows: stores new jobs, refused near it
    --! scope: queue            queue (the default) or global: which keys it works on
    --! missing_queue: skip     create (the default): a queue that does not exist is created first; skip: no reply
    --! uses: record, lease     files in scripts/parts, which may use others
    --! keys: jobs, ready       names of the key map: `K.jobs` is then the name of that key
    --! lazy: assign_slots      functions of its parts that are compiled at their first use (trim.py)

A mistake is an error with file and line.
"""

from collections.abc import Collection, Mapping

import msgspec

from windlass.store.redis.records.keys import GLOBAL_KEYS, QUEUE_KEYS

MARK = "--!"
_CHOICES: dict[str, tuple[str, ...]] = {
    "effect": ("reads", "writes"),
    "memory": ("any", "grows"),
    "scope": ("queue", "global"),
    "missing_queue": ("create", "skip"),
}
_LISTS = ("uses", "keys", "lazy")


class ScriptError(Exception):
    """A Lua file is not as its header says, or the header is wrong."""


class Header(msgspec.Struct, frozen=True):
    """What a Lua file declares."""

    effect: str = ""
    memory: str = ""
    scope: str = "queue"
    missing_queue: str = "create"
    uses: tuple[str, ...] = ()
    keys: tuple[str, ...] = ()
    lazy: tuple[str, ...] = ()

    @property
    def known_keys(self) -> Mapping[str, str]:
        """The part of the key map that the script works on."""
        return GLOBAL_KEYS if self.scope == "global" else QUEUE_KEYS


def parse_header(path: str, text: str, parts: Collection[str]) -> Header:
    """The header of a file; `parts` are the names that `uses` may have."""
    declared: dict[str, str | tuple[str, ...]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith(MARK):
            word, value = _parsed(f"{path}:{number}", line.removeprefix(MARK), parts)
            if word in declared:
                raise ScriptError(f"{path}:{number}: {word} is declared twice")
            declared[word] = value
    return msgspec.convert(declared, Header)


def _parsed(place: str, line: str, parts: Collection[str]) -> tuple[str, str | tuple[str, ...]]:
    word, _, rest = (each.strip() for each in line.partition(":"))
    if word in _CHOICES:
        if rest not in _CHOICES[word]:
            raise ScriptError(f"{place}: {word} is {' or '.join(_CHOICES[word])}, not {rest!r}")
        return word, rest
    if word not in _LISTS:
        raise ScriptError(f"{place}: unknown word {word!r}; there are {', '.join((*_CHOICES, *_LISTS))}")
    names = tuple(rest.replace(",", " ").split())
    known = {"uses": parts, "keys": {*QUEUE_KEYS, *GLOBAL_KEYS}}.get(word, names)
    for name in names:
        if name not in known:
            raise ScriptError(f"{place}: no such {'part' if word == 'uses' else 'key'}: {name}")
    return word, names
