"""Notifications to systemd (`Type=notify`, `WatchdogSec=`): datagrams to a socket; without one nothing is sent."""

import asyncio
import contextlib
import os
import socket
from collections.abc import MutableMapping

READY, STOPPING, ALIVE = "READY=1", "STOPPING=1", "WATCHDOG=1"


class Systemd:
    """The socket of this process's unit. Children do not inherit its variables."""

    def __init__(self, environ: MutableMapping[str, str] | None = None) -> None:
        environ = os.environ if environ is None else environ
        found = environ.pop("NOTIFY_SOCKET", "")
        self._address = "\0" + found[1:] if found.startswith("@") else found
        usec, pid = environ.pop("WATCHDOG_USEC", "0"), environ.pop("WATCHDOG_PID", "")
        ours = pid in ("", str(os.getpid()))
        self.watchdog_seconds = int(usec) / 1_000_000 if ours and usec.isdecimal() and self._address else 0.0
        """Silence after which systemd restarts the unit; 0: it does not watch."""

    def notify(self, *states: str) -> None:
        """Send states; a unit whose systemd does not listen goes on."""
        if self._address:
            with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                sender.sendto("\n".join(states).encode(), self._address)

    async def keep_alive(self) -> None:
        """Notify that the event loop runs, until cancelled."""
        while self.watchdog_seconds:
            self.notify(ALIVE)
            await asyncio.sleep(self.watchdog_seconds / 3)
