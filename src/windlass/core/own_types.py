"""The types of Windlass's own jobs: those of groups, graphs and webhooks."""

from windlass.core.graphs.ids import FLOW_TYPE, JOIN_TYPE, MAP_TYPE
from windlass.core.groups.ids import GROUP_TYPE, MEMBER_TYPE
from windlass.core.webhooks.delivery import WEBHOOK_TYPE

OWN_TYPES = frozenset({GROUP_TYPE, MEMBER_TYPE, FLOW_TYPE, JOIN_TYPE, MAP_TYPE, WEBHOOK_TYPE})


def without_own(types: tuple[str, ...]) -> tuple[str, ...]:
    """The types of the app, in the same order, without Windlass's own."""
    return tuple(type_ for type_ in types if type_ not in OWN_TYPES)
