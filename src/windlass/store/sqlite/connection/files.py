"""The database file and its companions, the files beside it: one name, permissions, a local file system.

SQLite keeps its log beside the file, and Windlass keeps its locks there. A second name of the file would have a
second set of them: two processes would write without seeing each other, and lose accepted jobs. A symbolic link is
not a second name, because companions are named after the real path. Neither is a folder that is mounted twice, nor
another spelling on a file system that ignores case: their companions are the same files.
"""

import contextlib
import os
import stat
import sys
from pathlib import Path
from typing import NamedTuple

from windlass.errors import ConfigError

COMPANIONS = ("-wal", "-shm", "-journal", "-turn", "-writers", "-live")
_OF_SQLITE = ("", "-wal", "-shm")
_KERNEL_NETWORK = """
9p acfs afs beegfs beegfs_nodev ceph cifs coda davfs drvfs fakeowner gfs2 glusterfs gpfs lustre ncpfs nfs nfs4 ocfs2
orangefs panfs prl_fs pvfs2 smb2 smb3 smbfs vboxsf virtiofs vmhgfs wekafs
"""
_FUSE_NETWORK = """
alluxio-fuse blobfuse blobfuse2 ceph-fuse cephfs curlftpfs davfs2 fuse_dfs gcsfuse glusterfs goofys grpcfuse hdfs
juicefs mfs mount-s3 mountpoint-s3 osxfs prl_fsd rclone s3fs s3ql seaweedfs sshfs vmhgfs-fuse
"""
NETWORK = frozenset(_KERNEL_NETWORK.split()) | {f"fuse.{name}" for name in _FUSE_NETWORK.split()}
"""Network file systems, and folders that a virtual machine or container shares with its host: they lack the shared
memory or the locks that SQLite's write-ahead log needs."""


def real_path(path: Path) -> Path:
    """The path without symbolic links; the file need not exist."""
    return Path(os.path.realpath(path))


def companion(path: Path, ending: str) -> Path:
    """A file beside the database."""
    path = real_path(path)
    return path.with_name(path.name + ending)


class Refusal(NamedTuple):
    """Why a file is refused, and what to do."""

    problem: str
    advice: str

    def __str__(self) -> str:
        return f"{self.problem}: {self.advice}"


def second_name(path: Path) -> Refusal | None:
    """Why this real path may not be the only name of the file; None if there is no sign of another."""
    names = _hard_links(path)
    if names > 1:
        problem = f"{path} has {names} names (hard links), each with a log and locks of its own, and would lose jobs"
        return Refusal(problem, "remove the other names, or copy the file")
    mounts = [each for each in (path, *(companion(path, end) for end in COMPANIONS)) if is_mount_point(each)]
    if mounts:
        problem = f"{mounts[0]} is a mount point, apart from the log and the locks beside it, and would lose jobs"
        return Refusal(problem, "mount the folder of the database instead")
    return None


def is_mount_point(path: Path) -> bool:
    """Whether something is mounted on this file or folder."""
    if sys.platform != "linux":
        return os.path.ismount(path)
    # By mount ids: a bind mount within one file system has the same device, and on overlayfs devices always differ.
    return os.path.lexists(path) and _mount_id(path) != _mount_id(path.parent)


def _hard_links(path: Path) -> int:
    try:
        found = os.stat(path)
    except OSError:
        return 0
    return found.st_nlink if stat.S_ISREG(found.st_mode) else 0


def _mount_id(path: Path) -> str | None:
    """The mount id of a path; None if it is unknown."""
    try:
        # O_PATH opens only the name: closing it drops no lock of this process on the file.
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        lines = Path(f"/proc/self/fdinfo/{descriptor}").read_text().splitlines()
    except OSError:
        return None
    finally:
        os.close(descriptor)
    return next((line.split()[1] for line in lines if line.startswith("mnt_id:")), None)


def check_local(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> None:
    """Refuse a network file system (on Linux; elsewhere nothing is checked)."""
    kind = file_system_of(folder, mounts)
    if kind in NETWORK:
        raise ConfigError(
            f"{folder} is on {kind}, a network file system, where SQLite loses data. Put the file on a local disk, "
            "or use PostgreSQL for several machines. (?allow_network_fs=true overrides this, at your risk.)"
        )


def file_system_of(folder: Path, mounts: Path) -> str | None:
    """The type of the file system of a folder; None if it is unknown."""
    if not mounts.exists():
        return None
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    kind = None
    for line in mounts.read_text().splitlines():
        # 36 35 98:0 /root /mount/point options [optional fields] - type source options
        head, _, tail = line.partition(" - ")
        if head.split()[2] == wanted:
            kind, source = tail.split()[:2]
            if kind == "fuse":
                kind = f"fuse.{source}"  # without a subtype; the source usually names the program
    return kind


def copy_permissions(target: Path | int, model: Path) -> None:
    """Give a file the permissions of another, as SQLite does for its log; root also gives it the owner."""
    with contextlib.suppress(OSError):  # the model does not exist yet, or this user may not change permissions
        found, ours = os.stat(model), os.stat(target)
        if os.geteuid() == 0 and (ours.st_uid, ours.st_gid) != (found.st_uid, found.st_gid):
            os.chown(target, found.st_uid, found.st_gid)
        if stat.S_IMODE(ours.st_mode) != stat.S_IMODE(found.st_mode):
            os.chmod(target, stat.S_IMODE(found.st_mode))


def has_permission(path: Path, mode: int) -> bool:
    """Whether this user has a permission (`os.R_OK` and the like)."""
    return os.access(path, mode, effective_ids=os.access in os.supports_effective_ids)


def ownership(path: Path) -> str:
    """A clause with the owner and mode of a file, and the user of this process."""
    try:
        found = os.stat(path)
    except OSError:
        return "check the permissions of its folder"
    return f"it belongs to user {found.st_uid} with mode {stat.S_IMODE(found.st_mode):o}, this is user {os.geteuid()}"


def denial(path: Path) -> str:
    """Why this user cannot open or create a file beside the database."""
    if path.exists():
        return f"{path} may not be opened by this user: {ownership(path)}"
    return f"{path} may not be created by this user in {path.parent}: {ownership(path.parent)}"


def write_obstacle(path: Path) -> str | None:
    """Which missing permission keeps this user from writing the database; None: permissions are not the reason."""
    # Permissions do not bind root, and on a read-only disk they are not the reason.
    if os.geteuid() == 0 or _is_read_only(path.parent):
        return None
    for each in (companion(path, ending) for ending in _OF_SQLITE):
        if each.exists() and not has_permission(each, os.W_OK):
            return f"{each} may not be written by this user: {ownership(each)}"
    if not has_permission(path.parent, os.W_OK | os.X_OK):
        return f"the folder {path.parent} may not be written by this user: {ownership(path.parent)}"
    return None


def _is_read_only(folder: Path) -> bool:
    try:
        return bool(os.statvfs(folder).f_flag & os.ST_RDONLY)
    except OSError:
        return False
