"""Blobs in a directory: `<shard>/<job id>/<name>`, readable by their owner only.

Several processes may share it; several machines too, if they see the same directory and their clocks agree within
hours. Every path is opened from the root without following links, from checked parts: whatever a row contains,
nothing outside the root is read.
"""

import contextlib
import os
import re
import stat
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from hashlib import sha256
from urllib.parse import quote

from windlass.blobs.contract import BlobFailed, BlobKey, BlobPage, KeptBlob
from windlass.core.ids import JobId, is_id
from windlass.core.reference import NAME

_SHARD = re.compile(r"[0-9a-f]{2}", re.ASCII)
_UNFINISHED = "."
"""The prefix of a file that is being written. A killed writer leaves it, and no reference names it."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Without blocking: it may be a pipe.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_WRITE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_TRIES = 3


class Directory:
    """A directory on a local disk, or on a shared mount."""

    def __init__(self, root: str, now: Callable[[], float] = time.time) -> None:
        self._root = root
        self._now = now

    @property
    def address(self) -> str:
        """The folder as a URL."""
        return f"file://{quote(self._root)}"

    def put(self, key: BlobKey, data: bytes) -> None:
        """Write a temporary file, flush it, rename it and flush the folders: a partial blob never has the name."""
        _check(key)
        for left in reversed(range(_TRIES)):
            try:
                self._put(key, data)
            except OSError as error:
                # A sweep may remove the empty folder just after this process created it.
                if not isinstance(error, FileNotFoundError) or not left:
                    self._remove_folder(key.job)
                    raise BlobFailed(f"{self._root} cannot be written: {_why(error)}") from error
            else:
                return

    def _put(self, key: BlobKey, data: bytes) -> None:
        with self._made_root() as root, _made(root, shard_of(key.job)) as shard, _made(shard, key.job) as folder:
            _write(folder, key.name, data)
            # Flush all folders each time: the process that made one may have died before the flush.
            for each in (folder, shard, root):
                os.fsync(each)

    def get(self, key: BlobKey, most: int) -> bytes:
        """Read a regular file; anything else is refused."""
        _check(key)
        try:
            with self._folder_of(key.job) as folder, os.fdopen(os.open(key.name, _READ, dir_fd=folder), "rb") as file:
                if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                    raise BlobFailed(f"{self._shown(key)} is not a plain file")
                return file.read(most + 1)
        except FileNotFoundError:
            hint = "" if os.path.isdir(self._root) else f"; there is no folder {self._root} here: is it mounted?"
            raise BlobFailed(f"{self._shown(key)} is missing{hint}") from None
        except OSError as error:
            raise BlobFailed(f"{self._shown(key)} cannot be read: {_why(error)}") from error

    def remove(self, keys: Sequence[BlobKey]) -> None:
        """Remove blobs; the folder of a job is removed with its last blob."""
        if wrong := [key for key in keys if not is_id(key.job) or "/" in key.name]:
            raise BlobFailed(f"{wrong[0]!r} is not the key of a blob")
        names: dict[JobId, list[str]] = {}
        for key in keys:
            names.setdefault(key.job, []).append(key.name)
        self._clear(names)

    def holding(self, jobs: Sequence[JobId]) -> list[JobId]:
        """The jobs among these that have a folder."""
        # A row that was edited by hand may have any id; without a valid one it has no blobs.
        return [job for job in jobs if is_id(job) and os.path.lexists(os.path.join(self._root, shard_of(job), job))]

    def drop(self, jobs: Sequence[JobId]) -> None:
        """Remove the folder of each job with its content."""
        self._clear(dict.fromkeys(filter(is_id, jobs)))

    def page(self, after: str | None, limit: int) -> BlobPage:
        """Blobs in the order of shard and id; a page has whole folders."""
        found: list[KeptBlob] = []
        cursor = None
        try:
            for cursor, job in self._folders(after):
                found += self._in_folder(job)
                if len(found) >= limit:
                    return BlobPage(tuple(found), cursor)
        except FileNotFoundError:
            pass  # nothing was ever stored here
        except OSError as error:
            raise BlobFailed(f"{self._root} cannot be read: {_why(error)}") from error
        return BlobPage(tuple(found), None)

    def _folders(self, after: str | None) -> Iterator[tuple[str, JobId]]:
        """Folders of jobs after a position; other files in the root are ignored."""
        begin, _, last = (after or "").partition("/")
        with self._open_root() as root:
            for shard in sorted(name for name in os.listdir(root) if _SHARD.fullmatch(name) and name >= begin):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError), _opened(shard, root) as opened:
                    jobs = sorted(filter(is_id, os.listdir(opened)))
                    yield from ((f"{shard}/{job}", job) for job in jobs if shard > begin or job > last)

    def _in_folder(self, job: JobId) -> list[KeptBlob]:
        try:
            with self._folder_of(job) as folder:
                ages = {name: self._age(name, folder) for name in os.listdir(folder)}
                # A writer that is killed early leaves an empty folder.
                ages = ages or {"": self._age(".", folder)}
        except (FileNotFoundError, NotADirectoryError):
            return []
        return [KeptBlob(BlobKey(job, name), age) for name, age in ages.items() if age is not None]

    def _age(self, name: str, folder: int) -> float | None:
        try:
            return self._now() - os.stat(name, dir_fd=folder, follow_symlinks=False).st_mtime
        except FileNotFoundError:
            return None

    def _clear(self, names: Mapping[JobId, Sequence[str] | None]) -> None:
        """Remove these files of these jobs (None: all files); raise after all were tried."""
        trouble: list[OSError] = []
        for job, wanted in names.items():
            with _noting(trouble), self._folder_of(job) as folder:
                for name in os.listdir(folder) if wanted is None else filter(None, wanted):
                    with _noting(trouble):
                        os.unlink(name, dir_fd=folder)
                self._remove_folder(job)
        if trouble:
            raise BlobFailed(f"{self._root} cannot be cleared: {_why(trouble[0])}") from trouble[0]

    def _remove_folder(self, job: JobId) -> None:
        with contextlib.suppress(OSError), self._open_root() as root, _opened(shard_of(job), root) as shard:
            os.rmdir(job, dir_fd=shard)

    @contextmanager
    def _folder_of(self, job: JobId) -> Iterator[int]:
        with self._open_root() as root, _opened(shard_of(job), root) as shard, _opened(job, shard) as folder:
            yield folder

    @contextmanager
    def _open_root(self) -> Iterator[int]:
        # The root itself may be a link: the operator chose it.
        descriptor = os.open(self._root, _FOLDER & ~os.O_NOFOLLOW)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def _made_root(self) -> Iterator[int]:
        """The root, created if only its last part is missing: more than that is a mistake, or a missing mount."""
        try:
            os.mkdir(self._root, 0o700)
        except FileExistsError:
            pass
        else:
            _flush(os.path.dirname(self._root))
        with self._open_root() as root:
            yield root

    def _shown(self, key: BlobKey) -> str:
        return os.path.join(self._root, shard_of(key.job), key.job, key.name)


def shard_of(job: JobId) -> str:
    """The shard of a job: ids begin with the time, so their prefixes would all be the same."""
    return sha256(job.encode()).hexdigest()[:2]


def _check(key: BlobKey) -> None:
    if not is_id(key.job) or not NAME.fullmatch(key.name):
        raise BlobFailed(f"{key!r} is not the key of a blob")


@contextmanager
def _opened(name: str, parent: int) -> Iterator[int]:
    descriptor = os.open(name, _FOLDER, dir_fd=parent)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def _made(parent: int, name: str) -> Iterator[int]:
    """A folder, created if missing."""
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o700, dir_fd=parent)
    with _opened(name, parent) as folder:
        yield folder


@contextmanager
def _noting(trouble: list[OSError]) -> Iterator[None]:
    """Collect errors, except that of a missing file."""
    try:
        yield
    except FileNotFoundError:
        return
    except OSError as error:
        trouble.append(error)


def _write(folder: int, name: str, data: bytes) -> None:
    unfinished = _UNFINISHED + name
    descriptor = os.open(unfinished, _WRITE, 0o600, dir_fd=folder)
    try:
        try:
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(descriptor, rest) :]
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        os.rename(unfinished, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(unfinished, dir_fd=folder)
        raise


def _flush(folder: str) -> None:
    descriptor = os.open(folder, _FOLDER & ~os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _why(error: OSError) -> str:
    if isinstance(error, FileNotFoundError):
        return "the folder that it should be in does not exist: make it, or mount it"
    return f"{error.strerror or error}"
