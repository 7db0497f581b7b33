"""References: text that no JSON can be, and that names nothing but a blob of its own job."""

import json

import pytest

from windlass.core.codec import readable_value
from windlass.core.reference import MAX_BLOB_SIZE, Reference, parse_reference, refer

DATA = b'{"a": 1}'
MARK = bytes(range(8))
DIGEST = "0" * 64


def test_a_reference_is_read_as_it_was_written() -> None:
    reference = refer("payload", MARK, DATA)
    assert parse_reference(reference.text) == reference
    assert (reference.name, reference.kind, reference.size) == ("payload.0001020304050607", "payload", len(DATA))
    assert reference.shown == {"blob": {"size": len(DATA), "sha256": reference.sha256}}


def test_no_reference_is_json() -> None:
    with pytest.raises(json.JSONDecodeError):
        json.loads(refer("result", MARK, DATA).text)


@pytest.mark.parametrize(
    "stored",
    [
        None,
        42,
        b"blob:v1:payload.0001020304050607:8:" + DIGEST.encode(),
        "",
        '"blob:v1:payload.0001020304050607:8:' + DIGEST + '"',
        f"blob:v2:payload.0001020304050607:8:{DIGEST}",
        f"blob:v1:../../../etc/passwd:8:{DIGEST}",
        f"blob:v1:payload.0001020304050607/../x:8:{DIGEST}",
        f"blob:v1:other.0001020304050607:8:{DIGEST}",
        f"blob:v1:payload.000102030405060:8:{DIGEST}",
        f"blob:v1:payload.0001020304050607:-8:{DIGEST}",
        f"blob:v1:payload.0001020304050607:٨:{DIGEST}",
        f"blob:v1:payload.0001020304050607:{MAX_BLOB_SIZE + 1}:{DIGEST}",
        f"blob:v1:payload.0001020304050607:8:{DIGEST}\n",
        f"blob:v1:payload.0001020304050607:8:{DIGEST[1:]}",
        f"blob:v1:payload.0001020304050607:8:{DIGEST.replace('0', 'A')}",
    ],
)
def test_anything_else_is_none(stored: object) -> None:
    assert parse_reference(stored) is None
    assert not isinstance(readable_value(stored), Reference)


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (DATA, None),
        (DATA[:-1], "7 bytes were found"),
        (DATA + b" ", "9 bytes were found"),
        (b"", "0 bytes were found"),
        (b'{"a": 2}', "its content was altered (sha256 "),
    ],
)
def test_what_is_found_must_be_what_was_put(found: bytes, problem: str | None) -> None:
    reported = refer("payload", MARK, DATA).problem(found)
    assert reported is None if problem is None else reported is not None and reported.startswith(problem)
