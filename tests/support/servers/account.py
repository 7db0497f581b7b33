"""Who runs a server: root may not, so a process of root starts it as an account that owns nothing."""

import os
import pwd
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, NamedTuple

NAME = "nobody"


class Account(NamedTuple):
    """A user and a group that processes are started as and files are given to; None: those that we have."""

    user: int | None
    group: int | None

    def start(
        self, command: Sequence[str | Path], folder: Path, log: IO[bytes], env: Mapping[str, str] | None = None
    ) -> subprocess.Popen[bytes]:
        """Run this in a folder, in a session of its own: a Ctrl-C at the tests is not for it."""
        return subprocess.Popen(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            user=self.user,
            group=self.group,
            extra_groups=None if self.user is None else [],
            env={**os.environ, "LC_ALL": "C", **(env or {})},
        )

    def runs(self, program: Path) -> str:
        """What a program says of its version; nothing if this account cannot run it."""
        try:
            return subprocess.run(
                [program, "--version"],
                cwd="/",
                capture_output=True,
                text=True,
                check=True,
                user=self.user,
                group=self.group,
                extra_groups=None if self.user is None else [],
            ).stdout
        except (OSError, subprocess.CalledProcessError):
            return ""

    def own(self, path: Path) -> None:
        """Give a file or an empty folder to this account."""
        if self.user is not None:
            shutil.chown(path, self.user, self.group)


def unprivileged() -> Account:
    """The account that servers run as."""
    if os.geteuid() != 0:
        return Account(None, None)
    entry = pwd.getpwnam(NAME)
    return Account(entry.pw_uid, entry.pw_gid)
