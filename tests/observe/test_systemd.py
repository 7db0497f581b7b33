"""Notifications to systemd: datagrams to the unit's socket, and nothing without one."""

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from windlass.observe.systemd import READY, STOPPING, Systemd


@pytest.fixture
def unit(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"{tmp_path}/notify")
        listener.settimeout(10)
        yield listener


def test_states_arrive_and_the_variables_are_not_inherited(unit: socket.socket) -> None:
    environ = {"NOTIFY_SOCKET": unit.getsockname(), "WATCHDOG_USEC": "3000000", "WATCHDOG_PID": str(os.getpid())}
    systemd = Systemd(environ)
    systemd.notify(READY, "STATUS=fine")
    assert unit.recv(100) == b"READY=1\nSTATUS=fine"
    assert (environ, systemd.watchdog_seconds) == ({}, 3.0)


def test_an_abstract_socket_is_reached() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(f"\0windlass-test-{os.getpid()}")
        listener.settimeout(10)
        Systemd({"NOTIFY_SOCKET": f"@windlass-test-{os.getpid()}"}).notify(STOPPING)
        assert listener.recv(100) == b"STOPPING=1"


async def test_the_watchdog_is_fed_while_the_loop_turns(unit: socket.socket) -> None:
    systemd = Systemd({"NOTIFY_SOCKET": unit.getsockname(), "WATCHDOG_USEC": "60000"})
    feeding = asyncio.create_task(systemd.keep_alive())
    loop = asyncio.get_running_loop()
    assert [await loop.run_in_executor(None, unit.recv, 100) for _ in range(3)] == [b"WATCHDOG=1"] * 3
    feeding.cancel()


@pytest.mark.parametrize(
    "environ",
    [{}, {"WATCHDOG_USEC": "60000"}, {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "60000", "WATCHDOG_PID": "1"}],
)
async def test_without_a_socket_or_for_another_process_nothing_is_watched(environ: dict[str, str]) -> None:
    systemd = Systemd(environ)
    systemd.notify(READY)
    await systemd.keep_alive()
    assert systemd.watchdog_seconds == 0
