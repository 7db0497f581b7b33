"""Addresses: what they say, and what is wrong with them."""

import pytest

from windlass.errors import ConfigError
from windlass.store.open import open_store, redact
from windlass.store.redis.connection.address import Address, Kind, parse_address


def _parsed(url: str) -> Address:
    return parse_address(url, redact(url))


@pytest.mark.parametrize(
    "url",
    [
        "redis://localhost",
        "redis://user:pa%2Fss@localhost:6380/3?prefix=shop&durability=none&replicas=2",
        "rediss://:secret@redis.example:6379/0?ssl_ca_certs=%2Fetc%2Fca.pem",
        "unix:///run/redis/redis.sock?db=2&prefix=shop",
        "redis+sentinel://u:p@a:1,b,[::1]:3/jobs/4?sentinel_password=other&prefix=shop",
        "rediss+cluster://a:1,b:2/0?replicas=1",
    ],
)
def test_an_address_says_the_same_to_another_process(url: str) -> None:
    address = _parsed(url)
    assert _parsed(address.url) == address


def test_the_options_are_ours_and_the_rest_is_the_drivers() -> None:
    address = _parsed("redis://u:p@h:1/2?prefix=shop&durability=none&replicas=1&client_name=me")
    assert address == Address("redis://u:p@h:1/2?client_name=me", "shop", durable=False, replicas=1)
    assert address.kind is Kind.SERVER


def test_sentinels_and_the_servers_that_they_watch_have_users_of_their_own() -> None:
    address = _parsed(
        "rediss+sentinel://u:p@a,b:2/jobs/4?sentinel_password=o%40&sentinel_username=s&ssl_cert_reqs=none"
    )
    assert address.kind is Kind.SENTINEL
    assert address.hosts == [("a", 26379), ("b", 2)]
    assert address.service == "jobs"
    assert address.at("::1", 7) == "rediss://u:p@[::1]:7/4?ssl_cert_reqs=none"
    assert address.sentinel("a", 26379) == "rediss://s:o%40@a:26379?ssl_cert_reqs=none"


def test_nodes_of_a_cluster_share_a_user() -> None:
    address = _parsed("redis+cluster://u:p@a,b:2")
    assert address.kind is Kind.CLUSTER
    assert address.hosts == [("a", 6379), ("b", 2)]
    assert address.at("c", 3) == "redis://u:p@c:3/0"


@pytest.mark.parametrize(
    ("url", "problem"),
    [
        ("redis://h/jobs", "a database of Redis is a number, not 'jobs'"),
        ("redis://h/1/2", "a database of Redis is a number"),
        ("redis://h:port", "write a host as host or host:port"),
        ("redis://", "write a host as host or host:port"),
        ("redis://a,b", "redis:// has one"),
        ("redis://h?durability=maybe", "durability is server or none, not 'maybe'"),
        ("redis://h?replicas=many", "replicas is a number from 0 to 10, not 'many'"),
        ("redis://h?replicas=11", "replicas is a number from 0 to 10"),
        ("redis://h?prefix=a b", "prefix"),
        ("redis://h?colour=red", "unknown option 'colour'; there are prefix, durability, replicas, db"),
        ("redis://h?sentinel_password=x", "unknown option 'sentinel_password'"),
        ("redis://h?ssl_ca_certs=/ca.pem", "ssl_ca_certs is for TLS; write rediss://"),
        ("redis+cluster://h?ssl_cert_reqs=none", "ssl_cert_reqs is for TLS; write rediss+cluster://"),
        ("unix:///s?ssl_cert_reqs=none", "ssl_cert_reqs is for TLS; a socket has none"),
        ("unix:///s?db=x", "a database of Redis is a number, not 'x'"),
        ("redis://h:70000", "a number up to 65535"),
        ("redis://u:p#x@h", "must be written %23"),
        ("unix://?db=1", "names no socket"),
        ("redis+sentinel://a,b", "names no service"),
        ("redis+sentinel://a,b/jobs/x", "a database of Redis is a number"),
        ("redis+cluster://a,b/1", "a cluster has only database 0"),
    ],
)
def test_a_mistake_is_refused_with_what_would_be_right(url: str, problem: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert problem in str(caught.value)


def test_all_mistakes_are_listed_together() -> None:
    with pytest.raises(ConfigError) as caught:
        open_store("redis://h/x?durability=maybe&colour=red&replicas=many")
    assert len(caught.value.problems) == 4


@pytest.mark.parametrize(
    "url", ["redis://u:hunter2@h/x", "redis://:hunter2@h/x", "redis+sentinel://a?sentinel_password=hunter2"]
)
def test_no_error_tells_a_password(url: str) -> None:
    with pytest.raises(ConfigError) as caught:
        open_store(url)
    assert "hunter2" not in str(caught.value)
