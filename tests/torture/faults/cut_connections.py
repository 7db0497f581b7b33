"""Connections to Redis are cut again and again, under calls of workers that run on uvloop."""

from pathlib import Path

import redis

from tests.support.processes import let_pass, until
from tests.support.servers.redis import RedisServer
from tests.torture.faults.long_jobs import OF_EACH_KIND, long_fault
from tests.torture.nemesis import Nemesis

CUTS = 60
TYPES = (*OF_EACH_KIND, *("long_talk",) * 4)
"""Under traffic: a call meets a connection that another one has just found cut."""


def cut_connections(nemesis: Nemesis, server: RedisServer) -> None:
    with long_fault(nemesis, "cut connections", TYPES) as seconds, redis.Redis.from_url(server.url) as client:
        # One of them may have been started again just now.
        until(lambda: any(map(_has_uvloop, nemesis.workers[0].runners())), "without uvloop this proves nothing")
        for _ in range(CUTS):
            client.execute_command("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
            client.execute_command("CLIENT", "KILL", "TYPE", "pubsub")
            let_pass(nemesis.dice.uniform(0, 2 * seconds / CUTS))


def _has_uvloop(pid: int) -> bool:
    """Whether it has loaded it: nothing of ours does so but to run on it."""
    try:
        return "uvloop" in Path(f"/proc/{pid}/maps").read_text()
    except OSError:
        return False  # it has ended meanwhile
