"""Statements by name: a .sql file has those of the module beside it, each after `-- name: claim`.

A profile of a store has its own text of some statements, in `claim.yugabyte.sql` beside `claim.sql`, and of parts of
others: `/*yugabyte … */` is only in its text, `/*plain*/ … /*end*/` only in that without a profile.
"""

import re
from collections.abc import Iterable
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

_OF_PROFILE = re.compile(r"/\*([a-z]+) (.*?)\*/", re.DOTALL)
_PLAIN = re.compile(r"/\*plain\*/(.*?)/\*end\*/", re.DOTALL)


@cache
def statements_of(store: str, profile: str = "") -> dict[str, str]:
    """The statements of a store and of the shared modules: `queues.sql` is for both, `queues.sqlite.sql` for one.

    All at once, when a store is opened: later the process may be out of file descriptors.
    """
    root = resources.files("windlass.store").joinpath(store)
    folders = [root, *(each for each in root.iterdir() if each.is_dir() and each.name != "migrations")]
    files = [file for folder in folders for file in folder.iterdir() if file.name.endswith(".sql")]
    files += [file for file in resources.files(__package__).iterdir() if file.name.endswith(".sql")]
    shared = _read(file for file in files if file.name.split(".")[1] in ("sql", store))
    own = _read(file for file in files if file.name.split(".")[1] == profile)
    return {name: _of(text, profile) for name, text in (shared | own).items()}


def _read(files: Iterable[Traversable]) -> dict[str, str]:
    blocks = [block for file in files for block in file.read_text().split("-- name: ")[1:]]
    found = {name: _code(text) for name, _, text in (block.partition("\n") for block in blocks)}
    assert len(found) == len(blocks), "two statements have the same name"
    return found


def _code(text: str) -> str:
    return "\n".join(line for line in text.strip().splitlines() if not line.lstrip().startswith("--"))


def _of(text: str, profile: str) -> str:
    """The text for a profile, or for none."""
    text = _PLAIN.sub(lambda found: "" if profile else found[1], text)
    return _OF_PROFILE.sub(lambda found: found[2] if found[1] == profile else "", text)
