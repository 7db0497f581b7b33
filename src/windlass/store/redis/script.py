"""Scripts: a verb's own text, with the parts that it uses in front of it, and the keys that all of it declares.

    -- claim: hold pending jobs for a runner
    -- uses: record, held
    -- keys: jobs ready pend

`uses` names files in scripts/parts, which may use others. `K.jobs` is then the name of that key. What the verb does
not need of its parts is left out, and so are the keys that only that would touch; what it says to need `rarely` is
made at its first use (trim.py).
"""

import re
from collections.abc import Sequence
from functools import cache
from hashlib import sha1
from importlib.resources import files

import msgspec

from windlass.store.redis.keys import OFFICE_KEYS, QUEUE_KEYS
from windlass.store.redis.trim import trimmed

_TOUCHED = re.compile(r"\bK\.(\w+)")
_HOME = files("windlass.store.redis") / "scripts"


class Script(msgspec.Struct, frozen=True):
    """A text for the server, called by its digest."""

    name: str
    text: str
    sha: str
    keys: tuple[str, ...]
    office: bool
    """Whether it works on what belongs to no queue."""
    grows: bool
    """Whether it takes new jobs in: not near the end of the server's memory."""
    finds: bool
    """Whether it answers only where there is a queue."""
    makes: bool
    """Whether a queue that is not there is made for it; else there is nothing to be found in one."""


@cache
def script(name: str, *, clustered: bool = False) -> Script:
    """The verb's script, put together once."""
    return put_together(name, (_HOME / f"{name}.lua").read_text(), clustered=clustered)


def put_together(name: str, body: str, *, clustered: bool = False) -> Script:
    """A script's own text, with all that it uses. It may ask for CLUSTERED, whether it runs on a cluster."""
    parts: dict[str, str] = {}
    _gather(body, parts)
    declared = {key for text in (*parts.values(), body) for key in _named(text, "keys")}
    office = any("-- of the office" in line for line in body.splitlines()[:6])
    grows = any("-- takes jobs in" in line for line in body.splitlines()[:6])
    makes = not any("-- makes no queue" in line for line in body.splitlines()[:8])
    known = OFFICE_KEYS if office else QUEUE_KEYS
    unknown = declared - known.keys()
    assert not unknown, f"{name}.lua: no such key: {unknown}"
    text = trimmed(list(parts.values()), body, _named(body, "rarely"))
    touched = declared if "K[" in text else set(_TOUCHED.findall(text))
    assert touched <= declared, f"{name}.lua: not declared: {touched - declared}"
    keys = tuple(key for key in known if key in touched)
    text = _with_keys(text, keys)
    finds = "WINDLASS_NEW_QUEUE" in text
    if "CLUSTERED" in text:
        text = f"local CLUSTERED = {str(clustered).lower()}\n{text}"
    return Script(name, text, sha1(text.encode()).hexdigest(), keys, office, grows, finds, makes)


def _with_keys(text: str, keys: Sequence[str]) -> str:
    """With the place of each key where its name was; a script that chooses its keys gets a table of them."""
    if "K[" in text:
        named = ", ".join(f"{key} = KEYS[{number}]" for number, key in enumerate(keys, 1))
        return f"local K = {{{named}}}\n{text}"
    return _TOUCHED.sub(lambda found: f"KEYS[{keys.index(found[1]) + 1}]", text)


def _gather(text: str, parts: dict[str, str]) -> None:
    """What it uses, each after what that uses."""
    for name in _named(text, "uses"):
        if name not in parts:
            part = (_HOME / "parts" / f"{name}.lua").read_text()
            _gather(part, parts)
            parts[name] = part


def _named(text: str, what: str) -> list[str]:
    mark = f"-- {what}:"
    found = [line[len(mark) :] for line in text.splitlines() if line.startswith(mark)]
    return [name for line in found for name in line.replace(",", " ").split()]
