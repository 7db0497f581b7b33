"""Messages of PostgreSQL's protocol: split from a stream, and made."""

import struct
from collections.abc import Iterator

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102


class Splitter:
    """Cuts a stream into messages: a letter, the length, the content."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[tuple[bytes, bytes]]:
        """The letter of each message that is complete by now, and the whole message."""
        data, start = self._rest + data, 0
        while len(data) - start >= 5:
            end = start + 1 + int.from_bytes(data[start + 1 : start + 5], "big")
            if end > len(data):
                break
            yield data[start : start + 1], data[start:end]
            start = end
        self._rest = data[start:]


def message(letter: bytes, content: bytes = b"") -> bytes:
    return letter + struct.pack("!i", len(content) + 4) + content


def query(text: str) -> bytes:
    """One or more statements, in the simple protocol."""
    return message(b"Q", text.encode() + b"\0")


def parse(name: bytes, text: str) -> bytes:
    """A statement to prepare."""
    return message(b"P", name + b"\0" + text.encode() + b"\0\0\0")


SYNC = message(b"S")


def strings(whole: bytes, count: int) -> list[bytes]:
    """The first strings of a message."""
    return whole[5:].split(b"\0", count)[:count]


def error_fields(whole: bytes) -> dict[str, str]:
    """The fields of an ErrorResponse: C the SQLSTATE, M the text."""
    return {field[:1].decode(): field[1:].decode() for field in whole[5:].split(b"\0") if field}


def error_response(state: str, text: str) -> bytes:
    fields = {"S": "ERROR", "V": "ERROR", "C": state, "M": text}
    return message(b"E", b"".join(f"{name}{value}\0".encode() for name, value in fields.items()) + b"\0")
