"""The workers' user loses channels or commands for longer than a lease, and gets them back."""

from tests.support.processes import let_pass
from tests.support.servers.redis import RedisServer
from tests.torture.faults.long_jobs import long_fault
from tests.torture.nemesis import Nemesis

USER, PASSWORD = "plain", "secret"
"""The user of workers and producers."""
SETTING = f"user {USER} on >{PASSWORD} ~* &* +@all"
COMMANDS = ("zadd", "hset", "zrem", "publish", "evalsha", "hget")


def address(server: RedisServer) -> str:
    """Of the server, for that user."""
    return server.url.replace("//", f"//{USER}:{PASSWORD}@", 1)


def channels_revoked(nemesis: Nemesis, server: RedisServer) -> None:
    """What a user of Redis 7 has who was not given any."""
    with long_fault(nemesis, "no channels") as seconds:
        server.execute("ACL", "SETUSER", USER, "resetchannels")
        let_pass(seconds)
        server.execute("ACL", "SETUSER", USER, "allchannels")


def commands_revoked(nemesis: Nemesis, server: RedisServer) -> None:
    command = nemesis.dice.choice(COMMANDS)
    with long_fault(nemesis, f"no {command}") as seconds:
        server.execute("ACL", "SETUSER", USER, f"-{command}")
        let_pass(seconds)
        server.execute("ACL", "SETUSER", USER, f"+{command}")
