"""Refuses network file systems: SQLite's write-ahead log needs shared memory and locks that they do not give."""

import os
from pathlib import Path

from windlass.errors import ConfigError

NETWORK = frozenset(
    {
        "nfs",
        "nfs4",
        "cifs",
        "smb3",
        "smbfs",
        "9p",
        "afs",
        "ceph",
        "glusterfs",
        "lustre",
        "gfs2",
        "ocfs2",
        "ncpfs",
    }
    | {
        "fuse.sshfs",
        "fuse.s3fs",
        "fuse.gcsfuse",
        "fuse.glusterfs",
        "fuse.rclone",
        "beegfs",
        "davfs",
        "vboxsf",
    }
)


def check_local(folder: Path, mounts: Path = Path("/proc/self/mountinfo")) -> None:
    """Raise if `folder` lies on a network file system (seen on Linux; elsewhere nothing is checked)."""
    kind = file_system_of(folder, mounts)
    if kind in NETWORK:
        raise ConfigError(
            f"{folder} is on {kind}, a network file system, where SQLite loses data. Put the file on a local disk, "
            "or use PostgreSQL for several machines. (?allow_network_fs=true overrides this, at your risk.)"
        )


def file_system_of(folder: Path, mounts: Path) -> str | None:
    """The type of the file system that holds a folder, or None if the system does not tell."""
    if not mounts.exists():
        return None
    device = os.stat(folder).st_dev
    wanted = f"{os.major(device)}:{os.minor(device)}"
    kind = None
    for line in mounts.read_text().splitlines():
        # 36 35 98:0 /root /mount/point options [optional fields] - type source options
        head, _, tail = line.partition(" - ")
        if head.split()[2] == wanted:
            kind = tail.split()[0]
    return kind
