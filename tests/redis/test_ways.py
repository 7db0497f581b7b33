"""The ways to a server: a socket, TLS, every version that is here."""

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.seed import claim_one, completed, enqueue_one, open_lease, settle
from tests.support.servers.account import unprivileged
from tests.support.servers.redis import RedisServer, new_redis
from tests.support.servers.redis_programs import Program, programs
from windlass import App, StoreUnavailable
from windlass.store.open import open_store
from windlass.store.records import Settled


async def _walk(url: str) -> None:
    """One job from enqueue to its end."""
    store = open_store(url)
    await open_lease(store)
    await enqueue_one(store)
    assert await settle(store, completed(await claim_one(store))) is Settled.SETTLED
    await store.close()


async def test_a_socket_of_this_machine(redis_server: RedisServer) -> None:
    await _walk(f"unix://{redis_server.socket}?db=1&prefix=shop")
    assert redis_server.info()["db1"]["keys"] > 0


async def test_a_socket_that_is_not_there_is_said(redis_server: RedisServer) -> None:
    store = open_store(f"unix://{redis_server.folder}/none.sock")
    with pytest.raises(StoreUnavailable, match=r"none\.sock") as caught:
        await enqueue_one(store)
    assert not caught.value.maybe_done
    await store.close()


@pytest.mark.parametrize("program", programs(), ids=lambda program: program.version)
async def test_every_version_that_is_here(program: Program) -> None:
    server = new_redis(program=program)
    server.start()
    try:
        await _walk(server.url)
    finally:
        server.remove()


@pytest.fixture(scope="module")
def certified(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[RedisServer, Path]]:
    """A server with a certificate, and the file of who signed it."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed: no certificate can be made")
    server = new_redis()
    key, certificate = server.folder / "key.pem", server.folder / "cert.pem"
    words = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=localhost"]
    words += ["-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", str(key), "-out", str(certificate)]
    subprocess.run([openssl, *words], check=True, capture_output=True)
    settings = server.folder / "redis.conf"
    port = server.port
    with settings.open("a") as file:
        file.write(f"port 0\ntls-port {port}\ntls-auth-clients no\n")
        file.write(f"tls-cert-file {certificate}\ntls-key-file {key}\ntls-ca-cert-file {certificate}\n")
    for path in (key, certificate):
        path.chmod(0o644)
        unprivileged().own(path)
    if not server.starts_with_tls():
        server.remove()
        pytest.skip(f"Redis {server.program.version} was built without TLS (Debian's redis-tools has it)")
    yield server, certificate
    server.remove()


async def test_tls_with_a_certificate_that_is_known(certified: tuple[RedisServer, Path]) -> None:
    server, certificate = certified
    await _walk(f"rediss://127.0.0.1:{server.port}/0?ssl_ca_certs={certificate}")


def test_tls_without_a_loop(certified: tuple[RedisServer, Path]) -> None:
    server, certificate = certified
    app = App(f"rediss://localhost:{server.port}/0?ssl_ca_certs={certificate}&prefix=blocking")

    @app.task
    def nothing() -> None: ...

    assert nothing.enqueue().id


async def test_an_unknown_certificate_is_refused(certified: tuple[RedisServer, Path]) -> None:
    server, _ = certified
    store = open_store(f"rediss://127.0.0.1:{server.port}/0")
    with pytest.raises(StoreUnavailable, match="certificate") as caught:
        await enqueue_one(store)
    assert not caught.value.maybe_done
    await store.close()


async def test_plain_words_to_a_server_with_tls_are_an_error_and_no_hang(certified: tuple[RedisServer, Path]) -> None:
    server, _ = certified
    store = open_store(f"redis://127.0.0.1:{server.port}/0", deadline=5)
    with pytest.raises(StoreUnavailable):
        await enqueue_one(store)
    await store.close()
