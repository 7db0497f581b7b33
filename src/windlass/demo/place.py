"""Where the tour keeps its jobs: apart from everybody else's, and nowhere when it is over."""

import asyncio
import contextlib
import secrets
from collections.abc import Iterator
from pathlib import Path

import msgspec

from windlass.store.open import POSTGRES, redact


@contextlib.contextmanager
def own_place(store: str | None, folder: Path) -> Iterator[tuple[str, str]]:
    """An address, and what is said of it: a temporary file, a schema of our own, or the empty store that is named."""
    if store is None:
        address = f"sqlite:///{folder}/demo.db"
        yield address, f"The store is one file: [cyan]{address}[/]"
    elif store.partition(":")[0] in POSTGRES and "schema=" not in store:
        with _own_schema(store) as (address, schema):
            yield address, f"The store is a schema of its own, [cyan]{schema}[/], in [cyan]{redact(store)}[/]"
    else:
        yield store, f"The store is [cyan]{redact(store)}[/]"


@contextlib.contextmanager
def _own_schema(store: str) -> Iterator[tuple[str, str]]:
    from windlass.store.postgres.address import parse_address
    from windlass.store.postgres.discard import discard

    shown = redact(store)
    address = msgspec.structs.replace(parse_address(store, shown), schema=f"windlass_demo_{secrets.token_hex(4)}")
    try:
        yield address.url, address.schema
    finally:
        asyncio.run(discard(address, shown))
