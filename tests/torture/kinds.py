"""The long faults of each store, by the names that TORTURE_KINDS takes."""

from collections.abc import Callable, Mapping

from tests.support.processes import children
from tests.support.servers.postgres import Mode, PostgresServer
from tests.support.servers.redis import RedisServer
from tests.torture.faults.choice import Kind
from tests.torture.faults.cut_connections import cut_connections
from tests.torture.faults.flapping import flapping
from tests.torture.faults.memory_full import memory_full, memory_scarce
from tests.torture.faults.outage import outage
from tests.torture.faults.paused_machine import paused_machine
from tests.torture.faults.rights_postgres import rights_revoked
from tests.torture.faults.rights_redis import channels_revoked, commands_revoked
from tests.torture.faults.signalled_group import signalled_group
from tests.torture.faults.stranger_lock import stranger_lock
from tests.torture.faults.stranger_rows import stranger_rows
from tests.torture.faults.stranger_write import stranger_write
from tests.torture.nemesis import Nemesis


def of_sqlite(nemesis: Nemesis) -> Mapping[str, Kind]:
    return {
        **_of_processes(nemesis, list),
        "stranger_write": lambda place: stranger_write(nemesis),
    }


def of_postgres(nemesis: Nemesis, server: PostgresServer) -> Mapping[str, Kind]:
    def stop() -> None:
        server.stop(nemesis.dice.choice([Mode.IMMEDIATE, Mode.FAST]))

    return {
        **_of_processes(nemesis, lambda: [server.pid, *children(server.pid)]),
        "flapping": lambda place: flapping(nemesis, stop, server.start),
        "outage": lambda place: outage(nemesis, stop, server.start),
        "rights_revoked": lambda place: rights_revoked(nemesis, server),
        "stranger_lock": lambda place: stranger_lock(nemesis, server),
        "stranger_rows": lambda place: stranger_rows(nemesis, server),
    }


def of_redis(nemesis: Nemesis, server: RedisServer) -> Mapping[str, Kind]:
    def stop() -> None:
        nemesis.dice.choice([server.kill, server.stop])()

    return {
        **_of_processes(nemesis, lambda: [server.pid]),
        "channels_revoked": lambda place: channels_revoked(nemesis, server),
        "commands_revoked": lambda place: commands_revoked(nemesis, server),
        "cut_connections": lambda place: cut_connections(nemesis, server),
        "memory_full": lambda place: memory_full(nemesis, server),
        "memory_scarce": lambda place: memory_scarce(nemesis, server),
        "flapping": lambda place: flapping(nemesis, stop, server.start),
        "outage": lambda place: outage(nemesis, stop, server.start),
    }


def _of_processes(nemesis: Nemesis, server: Callable[[], list[int]]) -> Mapping[str, Kind]:
    return {
        "paused_machine": lambda place: paused_machine(nemesis, server),
        "signalled_group": lambda place: signalled_group(nemesis, place),
    }
