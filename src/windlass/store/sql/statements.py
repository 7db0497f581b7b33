"""Statements by name: a .sql file has those of the module beside it, each after `-- name: claim`."""

from functools import cache
from importlib import resources


@cache
def statements_of(store: str) -> dict[str, str]:
    """The statements of a store and of the shared modules: `queues.sql` is for both, `queues.sqlite.sql` for one.

    All at once, when a store is opened: later the process may be out of file descriptors.
    """
    root = resources.files("windlass.store").joinpath(store)
    folders = [root, *(each for each in root.iterdir() if each.is_dir() and each.name != "migrations")]
    files = [file for folder in folders for file in folder.iterdir() if file.name.endswith(".sql")]
    files += [
        file
        for file in resources.files(__package__).iterdir()
        if file.name.endswith(".sql") and file.name.split(".")[1] in (store, "sql")
    ]
    blocks = [block for file in files for block in file.read_text().split("-- name: ")[1:]]
    found = {name: _code(text) for name, _, text in (block.partition("\n") for block in blocks)}
    assert len(found) == len(blocks), "two statements have the same name"
    return found


def _code(text: str) -> str:
    return "\n".join(line for line in text.strip().splitlines() if not line.lstrip().startswith("--"))
