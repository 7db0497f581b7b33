"""Examine a database file: every check, one after the other, whatever the others found.

Nothing is made and nothing is changed: the file is opened for reading only, and if nobody has it open, in a way that
needs no companion files.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

import msgspec

from windlass.errors import ConfigError, StoreUnavailable
from windlass.store.clock import Clock
from windlass.store.examination import Census, Examination, Finding, Level, problem
from windlass.store.sqlite.address import Address
from windlass.store.sqlite.db import Db
from windlass.store.sqlite.drivers import connections_of
from windlass.store.sqlite.examination.census import take_census
from windlass.store.sqlite.examination.file import (
    check_header,
    check_names,
    check_presence,
    check_rights,
    companion,
)
from windlass.store.sqlite.examination.inside import check_leftovers, check_machines, check_schema, check_soundness
from windlass.store.sqlite.examination.log import check_log
from windlass.store.sqlite.examination.place import check_durability, check_file_system, check_room
from windlass.store.sqlite.examination.versions import check_versions
from windlass.store.sqlite.life import Vouchers
from windlass.store.sqlite.trouble import DriverError, translate

T = TypeVar("T")


def examine(address: Address, clock: Clock, *, deep: bool) -> Examination:
    """Everything that can be told about a file, there or not, ours or not."""
    path, book = address.path, Notebook(address.path)
    book.look("versions", lambda: check_versions(address.driver))
    book.look("durability", lambda: check_durability(address))
    if path.parent.is_dir():
        book.look("file system", lambda: check_file_system(address))
        book.look("disk", lambda: check_room(path.parent))
    census = None
    if book.look("file", lambda: check_presence(path)):
        book.look("file", lambda: check_names(path))
        book.look("rights", lambda: check_rights(path))
        if book.look("file", lambda: check_header(path, connections_of(address.driver))):
            book.look("log", lambda: check_log(path))
            census = _read(address, clock, book, deep=deep)
    return Examination(tuple(book.findings), census)


class Notebook:
    """What was found so far."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.findings: list[Finding] = []

    def look(self, name: str, check: Callable[[], Iterable[Finding]]) -> bool:
        """Do a check and write down what it finds: whether that is no hindrance to go on."""
        found = self.attempt(name, lambda: list(check()))
        self.findings += found or ()
        return found is not None and all(each.level is not Level.PROBLEM for each in found)

    def attempt(self, name: str, work: Callable[[], T]) -> T | None:
        """What it gives; or None, and why it could not be done is written down."""
        try:
            return work()
        except DriverError as error:
            trouble = str(translate(error, self._path))
        except (ConfigError, StoreUnavailable, OSError, UnicodeDecodeError, msgspec.MsgspecError) as error:
            trouble = str(error)
        advice = "if no other finding explains that, restore a back-up"
        self.findings.append(problem(name, f"could not be checked: {trouble}", advice))
        return None


def _read(address: Address, clock: Clock, book: Notebook, *, deep: bool) -> Census | None:
    """Look inside; again and the ordinary way, if somebody began to use the file meanwhile."""
    path = address.path
    before, kept = _state(path), len(book.findings)
    alone = not any(companion(path, end).exists() for end in ("-wal", "-journal"))
    census = _inside(address, clock, book, deep=deep, alone=alone)
    if alone and _state(path) != before:
        del book.findings[kept:]
        census = _inside(address, clock, book, deep=deep, alone=False)
    return census


def _inside(address: Address, clock: Clock, book: Notebook, *, deep: bool, alone: bool) -> Census | None:
    path, library = address.path, connections_of(address.driver)
    connection = book.attempt("contents", lambda: library.to_look(path, alone=alone))
    if connection is None:
        return None
    folder = companion(path, "-live")
    db = Db(connection, clock, Vouchers(folder))
    try:
        book.look("schema", lambda: check_schema(connection))
        current = book.findings[-1].level is Level.OK
        book.look("integrity", lambda: check_soundness(connection, deep=deep))
        if not current:
            return None
        book.look("machine", lambda: check_machines(db))
        book.look("leftovers", lambda: check_leftovers(db, folder))
        # One snapshot for all of its statements; closing ends it.
        book.attempt("jobs", lambda: connection.run("BEGIN"))
        return book.attempt("jobs", lambda: take_census(db))
    finally:
        connection.close()


def _state(path: Path) -> tuple[int, int, bool]:
    found = os.stat(path)
    return found.st_mtime_ns, found.st_size, companion(path, "-wal").exists()
