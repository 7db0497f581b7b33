"""The groups of peers that are installed (`make .venv-peers/.ready`), each at a small size on a server of its own."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from bench.peer import Peer, PeerStore, find_peers
from bench.peer_entry import PeerEntry
from bench.run import find_store_bench
from bench.stores import postgres_server, redis_server
from bench.targets import POSTGRES_PEERS, REDIS_PEERS, SQLITE_PEERS

PEERS = Path(__file__).parents[2] / ".venv-peers"
MEMBERS = 20


@contextmanager
def sqlite_files(folder: Path) -> Iterator[str]:
    yield f"sqlite:///{folder}/{{run}}.db"


Serve = Callable[[Path], AbstractContextManager[str]]
GROUPS: list[tuple[Serve, PeerEntry]] = [
    (serve, entry)
    for serve, entries in (
        (sqlite_files, SQLITE_PEERS),
        (postgres_server.serve, POSTGRES_PEERS),
        (redis_server.serve, REDIS_PEERS),
    )
    for entry in entries
    if entry.group is not None
]


@pytest.fixture
def folder() -> Iterator[Path]:
    # Not pytest's own: as root a server runs as nobody, which may not enter it.
    with tempfile.TemporaryDirectory() as name:
        Path(name).chmod(0o755)
        yield Path(name)


def test_peers_whose_members_are_waited_for_are_in_the_table() -> None:
    assert [entry.name for _, entry in GROUPS] == ["DBOS", "DBOS", "Celery", "RQ", "bullmq"]
    assert all(entry.group is not None and entry.group.note for _, entry in GROUPS)


@pytest.mark.parametrize(
    ("serve", "entry"), GROUPS, ids=lambda value: value.name if isinstance(value, PeerEntry) else value.__module__
)
def test_a_group_of_a_peer_runs_to_its_end(folder: Path, serve: Serve, entry: PeerEntry) -> None:
    (peer,) = find_peers((entry,), PEERS)
    if not peer.runs:
        pytest.skip(f"{peer.name}: {peer.skip_reason}")
    with serve(folder) as template:
        store_bench = find_store_bench(template)
        address = store_bench.fresh()
        _run(peer, PeerStore(folder, address))
        store_bench.drop(address)


def _run(peer: Peer, peer_store: PeerStore) -> None:
    filled = peer.run("group", peer_store, MEMBERS)
    drained = peer.run("drain_group", peer_store, MEMBERS)
    assert (filled.jobs, drained.jobs, filled.version) == (MEMBERS, MEMBERS, peer.version)
    assert drained.seconds > 0
