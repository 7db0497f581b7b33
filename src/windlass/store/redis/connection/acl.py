"""ACL rules of a user with exactly the rights that Windlass needs."""

from windlass.store.redis.records.keys import DEFAULT_PREFIX

CONNECTION = ("hello", "auth", "ping", "info", "time", "wait")
SCRIPTS = ("eval", "evalsha")
HINTS = ("publish", "subscribe", "unsubscribe", "pubsub|numsub")
SHARDED = ("spublish", "ssubscribe", "sunsubscribe", "pubsub|shardnumsub")
"""Hints on a cluster of Redis 7 or later: older servers do not know these, and refuse a rule that names them."""
CLUSTER = ("cluster|slots", "asking")
KEYS = (
    *("exists", "del", "unlink", "type"),
    *("hget", "hset", "hsetnx", "hdel", "hmget", "hgetall", "hincrby", "hlen", "hexists", "hkeys", "hvals", "hscan"),
    *("zadd", "zrem", "zcard", "zcount", "zscore", "zlexcount", "zrange", "zrangebylex", "zrangebyscore"),
    *("zrevrange", "zrevrangebylex", "zrevrangebyscore", "zremrangebyscore", "zremrangebylex", "zremrangebyrank"),
    *("sadd", "srem", "smembers", "sismember", "scard", "spop", "srandmember"),
)
COMMANDS = (*CONNECTION, *SCRIPTS, *HINTS, *CLUSTER, *KEYS)


def acl_rules(prefix: str = DEFAULT_PREFIX, *, sharded: bool = False) -> list[str]:
    """The words after ACL SETUSER name on >password: the keys and channels of one prefix, and what is done there.

    `sharded` is for clusters of Redis 7 or later.
    """
    places = ["resetkeys", f"~{prefix}:*", "resetchannels", f"&{prefix}:*"]
    return [*places, "-@all", *(f"+{command}" for command in (*COMMANDS, *(SHARDED if sharded else ())))]
