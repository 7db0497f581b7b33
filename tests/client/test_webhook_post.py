"""One POST of a delivery: TLS, and answers that are none."""

import asyncio
import ipaddress
import shutil
import socket
import ssl
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from tests.support.receiver import answer, receiving
from windlass.client.webhooks import post as module
from windlass.client.webhooks.post import AddressRefused, Answer, DeliveryFailed, post

LOOPBACK = (ipaddress.ip_network("127.0.0.0/8"), ipaddress.ip_network("::1"))


@pytest.fixture
def certificate(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ssl.SSLContext:
    """Of localhost, and trusted by this process."""
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    command += ["-addext", "subjectAltName=DNS:localhost", "-keyout", "key.pem", "-out", "cert.pem"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    made.load_cert_chain(tmp_path / "cert.pem", tmp_path / "key.pem")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "cert.pem"))
    module._tls.cache_clear()
    return made


async def test_the_certificate_is_that_of_the_name_although_the_connection_goes_to_an_address(
    certificate: ssl.SSLContext,
) -> None:
    async with receiving(tls=certificate) as receiver:
        url = f"https://localhost:{receiver.port}/hook"
        assert await post(url, {"x": "y"}, b"{}", LOOPBACK, 10) == Answer(204)
        assert receiver.requests[0].headers["host"] == f"localhost:{receiver.port}"
        with pytest.raises(DeliveryFailed, match="CERTIFICATE_VERIFY_FAILED"):
            await post(f"https://127.0.0.1:{receiver.port}/", {}, b"{}", LOOPBACK, 10)
    module._tls.cache_clear()
    assert len(receiver.requests) == 1


@pytest.mark.parametrize(
    ("reply", "problem"),
    [
        (b"", "IncompleteReadError"),
        (b"SSH-2.0-OpenSSH_9.2\r\n\r\n", "not HTTP"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"y" * 20_000, "more than 16,384 bytes"),
        (answer(100) * 9, "the first 5 answers are all informational"),
    ],
)
async def test_an_answer_that_is_none_is_a_failure(reply: bytes, problem: str) -> None:
    async with receiving(reply) as receiver:
        with pytest.raises(DeliveryFailed, match=problem):
            await post(receiver.url, {}, b"{}", LOOPBACK, 10)


@pytest.mark.parametrize(("said", "seconds"), [("120", 120), ("99999999999", 86_400), ("soon", None), ("-1", None)])
async def test_the_time_that_a_receiver_asks_for_is_bounded(said: str, seconds: int | None) -> None:
    async with receiving(answer(503, f"Retry-After: {said}")) as receiver:
        assert await post(receiver.url, {}, b"{}", LOOPBACK, 10) == Answer(503, seconds)


async def test_one_forbidden_address_of_a_name_is_enough_to_send_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as receiver:

        def both(host: str, port: int, **more: Any) -> Any:
            return [(2, 1, 6, "", ("127.0.0.1", port)), (2, 1, 6, "", ("10.0.0.1", port))]

        monkeypatch.setattr(socket, "getaddrinfo", both)
        with pytest.raises(AddressRefused, match=r"10\.0\.0\.1 is private"):
            await post(f"http://two.example:{receiver.port}/", {}, b"{}", LOOPBACK, 10)
    assert receiver.writers == []


async def test_the_address_of_the_connection_itself_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    async with receiving() as receiver:
        connect = asyncio.open_connection

        async def elsewhere(address: str, port: int, **more: Any) -> Any:
            assert address == "93.184.216.34"
            return await connect("127.0.0.1", receiver.port)

        def public(host: str, port: int, **more: Any) -> Any:
            return [(2, 1, 6, "", ("93.184.216.34", port))]

        monkeypatch.setattr(asyncio, "open_connection", elsewhere)
        monkeypatch.setattr(socket, "getaddrinfo", public)
        with pytest.raises(AddressRefused, match="this machine"):
            await post("https://far.example/", {}, b"{}", (), 10)
    assert receiver.requests == []


async def test_without_tls_only_allowed_networks_are_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    def public(host: str, port: int, **more: Any) -> Any:
        return [(2, 1, 6, "", ("93.184.216.34", port))]

    monkeypatch.setattr(socket, "getaddrinfo", public)
    with pytest.raises(AddressRefused, match="without TLS"):
        await post("http://far.example/", {}, b"{}", LOOPBACK, 10)


async def test_a_name_server_that_does_not_answer_holds_up_no_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = threading.Event()

    def silent(host: str, port: int, **more: Any) -> Any:
        answers.wait()
        return []

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    with ThreadPoolExecutor(1) as threads:
        asyncio.get_running_loop().set_default_executor(threads)
        try:
            with pytest.raises(DeliveryFailed, match="no answer"):
                await post("https://far.example/", {}, b"{}", (), 0.01)
            async with asyncio.timeout(10):
                assert await asyncio.to_thread(lambda: 7) == 7
        finally:
            answers.set()
