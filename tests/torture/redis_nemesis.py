"""Faults of a Redis server, which hit all processes, besides those of workers and producers."""

import signal
from contextlib import suppress

import redis

from tests.support.processes import let_pass, signal_all
from tests.support.servers.redis import RedisServer
from tests.torture.faults.choice import Weighted
from tests.torture.nemesis import Nemesis
from tests.torture.yard import Yard
from windlass import WindlassError


class RedisNemesis(Nemesis):
    """Kills connections and the server itself, lets it stand still, and makes it forget every script."""

    def __init__(self, yard: Yard, seed: int, server: RedisServer) -> None:
        self._server = server
        super().__init__(yard, seed)

    def _short_faults(self) -> Weighted:
        return {
            **super()._short_faults(),
            "kill_connections": (5, self._kill_connections),
            "restart_server": (3, self._restart_server),
            "stop_the_world": (2, self._stop_the_world),
            "forget_scripts": (2, self._forget_scripts),
        }

    def _freeze(self, victims: list[int]) -> None:
        signal_all(victims, signal.SIGSTOP)

    def _kill_connections(self, place: int) -> None:
        with self.fault("kill connections", []), self._client() as client:
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")

    def _restart_server(self, place: int) -> None:
        """Killed, it has written what it answered for: only its machine has not died."""
        with self.fault("stop the server", []):
            self.dice.choice([self._server.kill, self._server.kill, self._server.stop])()
            let_pass(self.dice.choice([0, 0.5, 4]))
            self._server.start()

    def _stop_the_world(self, place: int) -> None:
        with self.fault("stand still", []):
            self._server.freeze()
            let_pass(self.dice.choice([0.2, 1, 3]))
            self._server.thaw()

    def _forget_scripts(self, place: int) -> None:
        with self.fault("forget scripts", []), self._client() as client:
            client.script_flush()

    def _cancel_some(self, place: int) -> None:
        with suppress(WindlassError):  # the server may be away
            super()._cancel_some(place)

    def _client(self) -> redis.Redis:
        return redis.Redis.from_url(self._server.url)
