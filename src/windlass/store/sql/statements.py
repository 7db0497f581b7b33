"""Statements by name: a .sql file has the statements of the module beside it, each after a line `-- name: claim`.

A profile of a store replaces whole statements in files such as `claim.yugabyte.sql`, each after a line
`-- replaces: claim`. Within a statement, `/*yugabyte … */` is text for that profile only, and `/*plain*/ … /*end*/`
text for the store without a profile.
"""

import re
from functools import cache
from importlib import resources

_HEAD = re.compile(r"^-- (name|replaces): (\w+)\n", re.MULTILINE)
_OF_PROFILE = re.compile(r"/\*([a-z]+) (.*?)\*/", re.DOTALL)
_PLAIN = re.compile(r"/\*plain\*/(.*?)/\*end\*/", re.DOTALL)


@cache
def statements_of(store: str, profile: str = "") -> dict[str, str]:
    """The statements of a store and of the shared modules: `queues.sql` is for both, `queues.sqlite.sql` for one.

    All are read when a store is opened: later the process may be out of file descriptors.
    """
    root = resources.files("windlass.store").joinpath(store)
    folders = [root, *(each for each in root.iterdir() if each.is_dir() and each.name != "migrations")]
    files = [file for folder in folders for file in folder.iterdir() if file.name.endswith(".sql")]
    files += [file for file in resources.files(__package__).iterdir() if file.name.endswith(".sql")]
    texts: dict[str, str] = {}
    for file in sorted(files, key=lambda file: file.name.split(".")[1] == profile):
        if file.name.split(".")[1] in ("sql", store, profile):
            add_statements(texts, file.read_text())
    return {name: _of(text, profile) for name, text in texts.items()}


def add_statements(texts: dict[str, str], written: str) -> None:
    """Add the statements of a file. A `name` must not be there yet, and what a statement `replaces` must be."""
    _, *parts = _HEAD.split(written)
    for head, name, text in zip(parts[::3], parts[1::3], parts[2::3], strict=True):
        if (name in texts) != (head == "replaces"):
            raise ValueError(f"-- {head}: {name}, but {'there is one' if name in texts else 'there is none'}")
        texts[name] = _code(text)


def _code(text: str) -> str:
    return "\n".join(line for line in text.strip().splitlines() if not line.lstrip().startswith("--"))


def _of(text: str, profile: str) -> str:
    """The text of a statement for a profile, or for none."""
    text = _PLAIN.sub(lambda found: "" if profile else found[1], text)
    return _OF_PROFILE.sub(lambda found: found[2] if found[1] == profile else "", text)
