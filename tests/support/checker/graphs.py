"""The law of graphs: a node runs as its condition says, and a graph ends as its nodes did.

That a node begins after those that it waits for is the law of chains: joins are their children.
"""

from collections.abc import Callable, Iterator, Mapping

from tests.support.checker.lives import Times
from tests.support.checker.order import Found, Jobs
from windlass.core.graphs.ids import FLOW_TYPE, JOIN_TYPE
from windlass.core.graphs.rules import When, node_in_reason
from windlass.core.groups.ids import is_member_id
from windlass.core.status import FINISHED, Status

LOST = (Status.DEAD, Status.CANCELLED)


def without_a_death(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I21: what waits for a death runs only if one of those nodes was lost."""
    for job in jobs.values():
        if job.get("type") != JOIN_TYPE or job["payload"].get("when") != When.DEAD:
            continue
        if job["status"] == Status.COMPLETED and not any(
            _was_lost(times, jobs, each) for each in job["payload"]["of"]
        ):
            yield job["id"], "its condition was met, and no node that it waited for was ever lost"


def wrongly_ended(times: Times, jobs: Jobs, counts: Mapping[str, int]) -> Iterator[Found]:
    """I21: when its nodes have ended, a graph ends: completed, if none is dead, and lost only with one of them."""
    for flow in [job for job in jobs.values() if job.get("type") == FLOW_TYPE]:
        nodes = [job for id_, job in jobs.items() if is_member_id(flow["id"], id_)]
        if flow["status"] not in FINISHED and all(node["status"] in FINISHED for node in nodes):
            yield flow["id"], "it waits, although all of its nodes have ended"
        if flow["status"] == Status.COMPLETED:
            for node in nodes:
                if node["status"] == Status.DEAD and not times.life(node["id"]).acted("retry"):
                    yield flow["id"], f"it completed, and its node {node['id']} is dead"
        culprit = node_in_reason(flow.get("reason")) if flow["status"] == Status.CANCELLED else None
        if culprit is not None and not _was_lost(times, jobs, culprit):
            yield flow["id"], f"it was cancelled because of its node {culprit}, which was never lost"


def _was_lost(times: Times, jobs: Jobs, node: str) -> bool:
    life = times.life(node)
    is_lost = jobs.get(node, {}).get("status") in LOST
    return is_lost or bool(life.acted("cancel")) or any(each.status in LOST for each in life.settles)


GRAPHS: list[tuple[str, Callable[[Times, Jobs, Mapping[str, int]], Iterator[Found]]]] = [
    ("I21", without_a_death),
    ("I21", wrongly_ended),
]
