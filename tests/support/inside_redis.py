"""The same look into Redis: past the contract, at the keys themselves."""

import struct
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import redis

from windlass.store.redis.records.keys import DEFAULT_PREFIX, KeyMap
from windlass.store.redis.records.record import Details, Fields, Flag, Record, encode, pack, unpack


class Redis:
    """What is under one prefix."""

    def __init__(self, address: str) -> None:
        parts = urlsplit(address)
        self._url = parts._replace(query="").geturl()
        self._keys = KeyMap(parse_qs(parts.query).get("prefix", [DEFAULT_PREFIX])[0])

    def leases(self) -> list[str]:
        (key,) = self._keys.global_keys(("lease_ends",))
        return [runner.decode() for runner in self._ask("ZRANGE", key, 0, -1)]

    def payload(self, id_: str) -> str:
        return self._found(id_)[1].payload

    def edit(self, id_: str, column: str, value: Any) -> None:
        """Only what no index tells of: those must agree with the record."""
        key, record = self._found(id_)
        rubbish = value if isinstance(value, bytes) else str(value).encode()
        if column in Fields.__struct_fields__:
            record.fields = msgspec.structs.replace(record.fields, **{column: _as_text(rubbish)})
        elif column in Details.__struct_fields__:
            record.flags |= Flag.HAS_DETAILS
            more = msgspec.structs.replace(record.details, **{column: _as_text(rubbish)})
            self._ask("HSET", key.removesuffix(":jobs") + ":details", id_, encode(more))
        elif column == "payload":
            record.payload = ""
            self._ask("HSET", key, id_, pack(record)[:-4] + struct.pack(">I", len(rubbish)) + rubbish)
            return
        else:
            setattr(record, column, value)
        self._ask("HSET", key, id_, pack(record))

    def is_held_up(self) -> bool:
        """A script is never half done."""
        return False

    def is_left_behind(self) -> bool:
        return False

    def _found(self, id_: str) -> tuple[str, Record]:
        """Where a job is, and its record."""
        (names,) = self._keys.global_keys(("queues",))
        for queue in self._ask("SMEMBERS", names):
            (key,) = self._keys.of_queue(queue.decode(), ("jobs",))
            if value := self._ask("HGET", key, id_):
                return key, unpack(id_, value)
        raise KeyError(id_)

    def _ask(self, *words: Any) -> Any:
        with redis.Redis.from_url(self._url) as client:
            return client.execute_command(*words)


def _as_text(rubbish: bytes) -> msgspec.Raw:
    """Packed as if it were text: nothing else is ever written."""
    return msgspec.Raw(b"\xd9" + bytes([len(rubbish)]) + rubbish)
