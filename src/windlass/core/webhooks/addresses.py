"""Addresses that a webhook may not reach: an HTTP request from inside a network is a way into it."""

import ipaddress
from collections.abc import Sequence

from windlass.core.text import shown
from windlass.errors import ConfigError

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network
MAX_NETWORKS = 100
_NAT64 = ipaddress.IPv6Network("64:ff9b::/96")
_ROUTED = (ipaddress.IPv6Network("2000::/3"), _NAT64)
"""Other IPv6 is not public, whatever a release of Python says; some of it contains IPv4 addresses."""
_REFUSED: dict[str, tuple[str, ...]] = {
    "this machine": ("0.0.0.0/8", "127.0.0.0/8", "::/128", "::1/128"),
    "link-local, where clouds have their metadata": ("169.254.0.0/16", "fe80::/10"),
    "the metadata of a cloud": ("100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::254/128"),
    "private": (
        "10.0.0.0/8",
        "172.16.0.0/12",
        "192.168.0.0/16",
        "100.64.0.0/10",
        "192.0.0.0/24",
        "fc00::/7",
        "fec0::/10",
    ),
    "multicast": ("224.0.0.0/4", "ff00::/8"),
}
_NETWORKS: tuple[tuple[str, Network], ...] = tuple(
    (kind, ipaddress.ip_network(network)) for kind, networks in _REFUSED.items() for network in networks
)


def parse_networks(text: str, setting: str) -> tuple[Network, ...]:
    """Networks that are allowed although they are not public: `10.1.0.0/16, 127.0.0.1`; raises ConfigError."""
    found: list[Network] = []
    for part in filter(None, (each.strip() for each in text.split(","))):
        try:
            found.append(ipaddress.ip_network(part))
        except ValueError as error:
            raise ConfigError(f"{setting}: {shown(part)} is not a network such as 10.1.0.0/16: {error}") from None
    if len(found) > MAX_NETWORKS:
        raise ConfigError(f"{setting} has {len(found)} networks, the limit is {MAX_NETWORKS}")
    return tuple(found)


def refusal(text: str, allowed: Sequence[Network] = ()) -> str | None:
    """Why nothing is sent to an address; None: it may be sent."""
    address = _address(text)
    inner = _embedded(address)
    if is_allowed(text, allowed):
        return None
    for each in (address,) if inner is None else (inner, address):
        kind = next((kind for kind, network in _NETWORKS if each in network), None)
        if kind is not None or not each.is_global or not _is_routed(each):
            return f"{text} is {kind or 'not a public address'}"
    return None


def is_allowed(text: str, allowed: Sequence[Network]) -> bool:
    """Whether the address is in an allowed network; for an IPv6 address with an IPv4 address inside, the latter
    counts.
    """
    address = _address(text)
    inner = _embedded(address) or address
    return any(inner in network for network in allowed)


def is_address(text: str) -> bool:
    """Whether a host is an address instead of a name."""
    try:
        _address(text)
    except ValueError:
        return False
    return True


def _address(text: str) -> Address:
    return ipaddress.ip_address(text.strip("[]").partition("%")[0])


def _is_routed(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv4Address) or any(address in network for network in _ROUTED)


def _embedded(address: Address) -> ipaddress.IPv4Address | None:
    """The IPv4 address inside an IPv6 address; None if there is none."""
    if isinstance(address, ipaddress.IPv4Address):
        return None
    if address in _NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    teredo = address.teredo
    return address.ipv4_mapped or address.sixtofour or (teredo[1] if teredo else None)
