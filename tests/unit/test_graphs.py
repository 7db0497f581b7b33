"""Graphs: what an end means for the nodes below it, and ids that sort as the nodes depend on each other."""

from itertools import product

import pytest

from windlass.client.graphs.edges import MAX_DIRECT
from windlass.core.graphs.ids import INDEXES, MAX_JOINS, MAX_NODES, join_id, map_id, node_id, node_number
from windlass.core.graphs.rules import (
    NodeEnd,
    is_unmet,
    name_in_meta,
    name_to_meta,
    node_end,
    node_in_reason,
    unmet_reason,
    when_dead,
)
from windlass.core.groups.ids import is_group_id, named_group_id
from windlass.core.groups.rules import Verdict
from windlass.core.jobs.dependencies import ParentEffect, effect_of
from windlass.core.status import FINISHED, Status

FLOW = named_group_id("order-42")


def test_an_end_releases_those_that_wait_for_ends_and_a_death_cancels_the_others() -> None:
    for status, when_ended in product(Status, (False, True)):
        expected = ParentEffect.WAIT
        if status in FINISHED:
            fits = when_ended or status is Status.COMPLETED
            expected = ParentEffect.RELEASE if fits else ParentEffect.CANCEL
        assert effect_of(status, when_ended) is expected


@pytest.mark.parametrize(
    ("status", "outcome", "skipped", "end"),
    [
        (Status.COMPLETED, None, False, NodeEnd.COMPLETED),
        (Status.DEAD, None, False, NodeEnd.LOST),
        (Status.CANCELLED, None, False, NodeEnd.LOST),
        (Status.CANCELLED, None, True, NodeEnd.SKIPPED),
        (Status.FAILED, None, False, NodeEnd.LIVE),
        (Status.BLOCKED, None, False, NodeEnd.LIVE),
        (None, "completed", False, NodeEnd.COMPLETED),
        (None, "failed", False, NodeEnd.LOST),
        (None, None, False, NodeEnd.LOST),
    ],
)
def test_what_a_node_counts_as(status: Status | None, outcome: str | None, skipped: bool, end: NodeEnd) -> None:
    assert node_end(status, outcome, skipped=skipped) is end


@pytest.mark.parametrize(
    ("ends", "verdict"),
    [
        ({NodeEnd.COMPLETED}, Verdict.CANCEL),
        ({NodeEnd.SKIPPED, NodeEnd.COMPLETED}, Verdict.CANCEL),
        ({NodeEnd.LIVE, NodeEnd.COMPLETED}, Verdict.WAIT),
        ({NodeEnd.LIVE, NodeEnd.LOST}, Verdict.RUN),
        ({NodeEnd.LOST}, Verdict.RUN),
    ],
)
def test_one_lost_node_is_enough_for_when_dead_and_a_skipped_one_is_not_lost(
    ends: set[NodeEnd], verdict: Verdict
) -> None:
    assert when_dead(ends) is verdict


def test_ids_of_nodes_and_their_joins_sort_in_the_order_of_the_graph() -> None:
    ids = []
    for number in (0, 1, 2, 255, 256, MAX_NODES - 1):
        ids += [join_id(FLOW, number, place) for place in (0, 1, MAX_JOINS - 1)] + [node_id(FLOW, number)]
    assert ids == sorted(set(ids))
    assert [node_number(FLOW, id_) for id_ in ids[3::4]] == [0, 1, 2, 255, 256, MAX_NODES - 1]
    assert {node_number(FLOW, id_) for place in range(3) for id_ in ids[place::4]} == {None}


def test_every_index_of_the_largest_graph_fits() -> None:
    assert MAX_NODES * INDEXES <= 1 << 20
    assert -(-MAX_NODES // MAX_DIRECT) <= MAX_JOINS, "joins of a node that waits for all others"


def test_the_members_of_a_map_have_a_group_of_their_own() -> None:
    assert is_group_id(map_id(FLOW, 3))
    assert len({map_id(FLOW, number) for number in range(100)} | {FLOW}) == 101


def test_the_reason_of_a_skipped_node_names_the_node() -> None:
    reason = unmet_reason(node_id(FLOW, 1), Status.COMPLETED)
    assert is_unmet(reason)
    assert node_in_reason(reason) == node_id(FLOW, 1)
    assert not is_unmet("by hand")
    assert node_in_reason(None) is None
    assert node_in_reason("its node is drained") is None, "an operator's own words"


def test_the_name_of_a_node_is_kept_beside_its_other_meta() -> None:
    import msgspec

    kept = msgspec.json.decode(name_to_meta('{"a":1}', 'x"y'))
    assert kept["a"] == 1
    assert name_in_meta(kept) == 'x"y'
    assert name_in_meta([1]) is None
