"""The proxy that tests of workers put before a server."""

import socket
from contextlib import suppress

import pytest

from windlass.testing.workers.proxy import LossyProxy


@pytest.mark.parametrize("sent", [b"", b"GET /half"])
def test_its_end_closes_connections_without_a_whole_request(sent: bytes) -> None:
    with LossyProxy("127.0.0.1", 9) as proxy:
        client = socket.create_connection(("127.0.0.1", proxy.port))
        client.sendall(sent)
    with client:
        client.settimeout(60)
        with suppress(ConnectionResetError):  # closed before it was accepted
            assert client.recv(1) == b""


def test_it_closes_connections_when_it_goes_away() -> None:
    with LossyProxy("127.0.0.1", 9) as proxy, socket.create_connection(("127.0.0.1", proxy.port)) as client:
        proxy.go_away()
        client.settimeout(60)
        assert client.recv(1) == b""
