"""From an address to the wire that leads there."""

from windlass.store.redis.address import Address, Kind
from windlass.store.redis.cluster import ClusterWire
from windlass.store.redis.sentinel import SentinelWire
from windlass.store.redis.wire import Line, Wire


def wire_to(address: Address) -> Wire:
    """Nothing is connected yet."""
    match address.kind:
        case Kind.SERVER:
            return Line(address.dsn, address.replicas)
        case Kind.SENTINEL:
            return SentinelWire(address)
        case Kind.CLUSTER:
            return ClusterWire(address)
