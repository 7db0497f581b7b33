"""The folder of blobs, seen from outside."""

import os
from pathlib import Path

MEGABYTE = 2**20


def blobs(root: Path) -> list[Path]:
    """Every file in it, finished or not."""
    return sorted(path for path in root.rglob("*") if not path.is_dir())


def folders(root: Path) -> list[Path]:
    """The folders of jobs."""
    return sorted(path for path in root.glob("*/*") if path.is_dir())


def grow_old(root: Path, seconds: float) -> None:
    """Everything in it was written so much earlier."""
    for path in root.rglob("*"):
        was = path.lstat().st_mtime
        os.utime(path, (was - seconds, was - seconds), follow_symlinks=False)


def make_file(path: Path) -> None:
    """Something that is in the way."""
    path.touch()
