"""Code that is run as another user, in a process of its own."""

import os
import sys
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

ORDINARY = 1001


def need_two_users() -> None:
    """What can be seen with one user is tested in tests/sqlite/test_rights.py, as any user."""
    if os.geteuid() != 0:
        pytest.skip("only root may become another user")


def as_user(uid: int, work: Callable[[], Any], *, umask: int = 0o022, groups: tuple[int, ...] = ()) -> Any:
    """What the work returns, as JSON has it, in a fork of this process that belongs to a user.

    A fork, not a new interpreter: that may lie in a home folder, where other users may not read. For the same reason
    the work should have been done once by this process, so that all modules are loaded.
    """
    read, write = os.pipe()
    if not (pid := os.fork()):
        code = 1
        try:
            os.close(read)
            os.umask(umask)
            _become(uid, groups)
            with open(write, "wb") as pipe:
                pipe.write(msgspec.json.encode(work()))
            code = 0
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(code)
    os.close(write)
    with open(read, "rb") as pipe:
        said = pipe.read()
    assert os.waitpid(pid, 0)[1] == 0, "the process of the other user failed: its traceback is above"
    return msgspec.json.decode(said)


def without_privileges(work: Callable[[], Any]) -> Any:
    """What the work returns if rights count: root may do anything, so it becomes an ordinary user."""
    return as_user(ORDINARY if os.geteuid() == 0 else os.geteuid(), work)


def _become(uid: int, groups: tuple[int, ...]) -> None:
    if os.geteuid() != uid:
        os.setgroups(groups)
        os.setresgid(uid, uid, uid)
        os.setresuid(uid, uid, uid)
