"""From an address to a blob store: the only module that names the implementations."""

import os
from urllib.parse import unquote, urlsplit

from windlass.blobs.contract import BlobStore
from windlass.blobs.directory import Directory
from windlass.blobs.offload import Offload
from windlass.errors import ConfigError

BLOBS_VARIABLE = "WINDLASS_BLOBS"


def open_blobs(address: str) -> Offload:
    """The blobs at an address. No I/O happens here; a relative folder is resolved now."""
    return Offload(_store_at(address))


def absolute_blobs(address: str, folder: str | None) -> str:
    """The same address, independent of the current folder; `open_blobs` refuses invalid ones."""
    if address.startswith(("/", "~")) or ":" in address.partition("/")[0]:
        return address
    if folder is None:
        raise ConfigError(f"blobs {address!r:.200} is relative, and the current folder was removed")
    return os.path.normpath(os.path.join(folder, address))


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
    if path.startswith("~"):
        raise ConfigError(f"blobs {address!r:.200}: ~ is not the home folder here; write the whole path")
    if "\0" in path or not path.strip() or os.path.abspath(path) == "/":
        raise ConfigError(f"blobs {address!r:.200}: names no folder; write ./blobs or file:///absolute/folder")
    return os.path.abspath(path)
