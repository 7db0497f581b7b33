"""Where the tour keeps its jobs: apart from everybody else's, and nowhere when it is over."""

import asyncio
import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

from windlass.store.open import apart, discard, redact


@contextlib.contextmanager
def own_place(store: str | None, folder: Path) -> Iterator[tuple[str, str]]:
    """An address, and what is said of it: a temporary file, a corner of our own, or the empty store that is named."""
    if store is None:
        address = f"sqlite:///{folder}/demo.db"
        yield address, f"The store is one file: [cyan]{address}[/]"
        return
    name = f"windlass_demo_{secrets.token_hex(4)}"
    own = apart(store, name)
    if own is None:
        yield store, f"The store is [cyan]{redact(store)}[/]"
        return
    corner = own[len(store) + 1 :].partition("=")[0]
    try:
        yield own, f"The store is a {corner} of its own, [cyan]{name}[/], in [cyan]{redact(store)}[/]"
    finally:
        asyncio.run(discard(own))
