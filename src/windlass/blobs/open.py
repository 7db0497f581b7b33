"""From an address to a blob store: the only place that knows which there are."""

import os
from urllib.parse import unquote, urlsplit

from windlass.blobs.contract import BlobStore
from windlass.blobs.directory import Directory
from windlass.blobs.offload import Offload
from windlass.errors import ConfigError

BLOBS_VARIABLE = "WINDLASS_BLOBS"


def open_blobs(address: str) -> Offload:
    """The blobs at an address. No I/O happens here; a relative folder is taken from the current one, now."""
    return Offload(_store_at(address))


def _store_at(address: str) -> BlobStore:
    if not isinstance(address, str):
        raise ConfigError(f"blobs should be a string such as './blobs', not {type(address).__name__}")
    scheme, colon, rest = address.partition(":")
    if colon and "/" not in scheme and not rest.startswith("//"):
        raise ConfigError(f"blobs {address!r:.200}: write a folder (./blobs) or file:///absolute/folder")
    if colon and rest.startswith("//") and scheme != "file":
        raise ConfigError(
            f"blobs: unknown blob store {scheme!r:.50}; this version has a folder (./blobs) or file:///absolute/folder"
        )
    return Directory(_folder(address))


def _folder(address: str) -> str:
    path = address
    if address.startswith("file://"):
        parts = urlsplit(address)
        if parts.netloc or parts.query or parts.fragment:
            raise ConfigError(f"blobs {address!r:.200}: write file:///absolute/folder (three slashes, no ? and no #)")
        path = unquote(parts.path)
    if "\0" in path or not path.strip() or os.path.abspath(path) == "/":
        raise ConfigError(f"blobs {address!r:.200}: names no folder; write ./blobs or file:///absolute/folder")
    return os.path.abspath(path)
