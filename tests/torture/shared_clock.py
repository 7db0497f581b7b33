"""A clock that several processes share, by a file: it runs fast, can be set, and can be stopped."""

import os
import time
from pathlib import Path

import msgspec

from windlass.core.moments import Micros
from windlass.store.clock import since_boot

SPEED = 10
"""Seconds of this clock in one of ours."""


class _Setting(msgspec.Struct, frozen=True):
    wall: Micros
    """What it showed when it was set."""
    since: Micros
    """When that was, since boot."""
    speed: int


class SharedClock:
    """windlass.store.clock.Clock: every process that opens the same file sees the same time."""

    def __init__(self, path: Path) -> None:
        self.boot = "shared"
        self._path = path
        if not path.exists():
            self._set(time.time_ns() // 1000, SPEED)

    def wall(self) -> Micros:
        setting = self._setting()
        return setting.wall + (since_boot() - setting.since) * setting.speed

    def since_boot(self) -> Micros:
        return since_boot()

    def jump(self, micros: Micros) -> None:
        """It is set, ahead or back."""
        self._set(self.wall() + micros, self._setting().speed)

    def stop(self) -> None:
        """From now on it is always the same moment."""
        self._set(self.wall(), 0)

    def _setting(self) -> _Setting:
        return msgspec.json.decode(self._path.read_bytes(), type=_Setting)

    def _set(self, wall: Micros, speed: int) -> None:
        """Whole or not at all, for every reader."""
        beside = self._path.with_suffix(".new")
        beside.write_bytes(msgspec.json.encode(_Setting(wall, since_boot(), speed)))
        os.replace(beside, self._path)
