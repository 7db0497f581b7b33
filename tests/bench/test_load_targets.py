"""Targets for latency: only peers that keep a job whose worker dies set one."""

from bench.context import Load
from bench.measures.load import SERVED, LoadRounds, _rows
from bench.peer import Peer
from bench.peer_entry import PeerEntry


def test_a_peer_that_loses_jobs_is_shown_without_a_target() -> None:
    ours, theirs = LoadRounds([2.0], [4.0]), LoadRounds([1.0], [3.0])
    peers = [Peer(PeerEntry(name=str(keeps), package="p", script="p.py", keeps=keeps)) for keeps in (True, False)]
    rows = _rows(Load(50, 1_000), ours, [(peer, theirs) for peer in peers])
    targets = {row.base.name: row.target for row in rows if row.base is not None}
    assert targets == {"True": SERVED, "False": None}
