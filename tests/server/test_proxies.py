"""Behind a proxy: whose X-Forwarded-For counts, TLS by nginx, and what a default install shows to a stranger."""

import asyncio
import shutil
import socket
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx
import pytest

from tests.server.test_serve import Served
from tests.support.processes import until
from tests.support.servers.ports import free_port
from windlass import App
from windlass.server.application import OPERATIONS
from windlass.server.serve import ServerConfig, make_server

NGINX = shutil.which("nginx", path="/usr/sbin:/usr/bin")
CONFIG = """
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl;
        ssl_certificate {folder}/cert.pem;
        ssl_certificate_key {folder}/key.pem;
        client_max_body_size 16m;
        location / {{
            proxy_pass http://127.0.0.1:{behind};
            proxy_set_header Host $http_host;
            proxy_set_header X-Forwarded-For $remote_addr;
            proxy_set_header X-Forwarded-Proto $scheme;
        }}
    }}
}}
"""


@asynccontextmanager
async def listening(app: App, *proxies: str, hosts: tuple[str, ...] = ()) -> AsyncIterator[httpx.AsyncClient]:
    """A server on a port, in this event loop."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        held.listen(100)
        server = make_server(app, ServerConfig(unready=0, drain=5, proxies=proxies, hosts=hosts))
        task = asyncio.create_task(server.serve([held]))
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{held.getsockname()[1]}") as client:
            yield client
        server.should_exit = True
        await task


@pytest.mark.parametrize(("proxies", "statuses"), [((), [401] * 10 + [429]), (("127.0.0.1",), [401] * 11)])
async def test_another_address_is_believed_from_a_named_proxy_alone(
    app: App, proxies: tuple[str, ...], statuses: list[int]
) -> None:
    async with listening(app, *proxies) as client:
        answers = []
        for number in range(11):
            forged = {"x-forwarded-for": f"10.0.0.{number}", "authorization": f"Bearer wl_{number:012x}_{'0' * 64}"}
            answers.append((await client.get("/api/v1/jobs", headers=forged)).status_code)
    assert answers == statuses


async def test_a_stranger_gets_401_everywhere_but_at_health_and_log_in(app: App) -> None:
    async with listening(app) as client:
        for operation in OPERATIONS:
            path = "/api/v1" + operation.path.replace("{id}", "x").replace("{name}", "x")
            answer = await client.request(operation.method, path, json={})
            assert (answer.status_code, answer.json()["code"]) == (401, "unauthorized"), path
        for path, status in (
            ("/api/v1/openapi.json", 401),
            ("/api/v1/docs", 401),
            ("/healthz", 200),
            ("/readyz", 200),
            ("/startupz", 200),
            ("/login", 200),
            ("/static/windlass.css", 200),
            ("/", 303),
            ("/api/v1", 404),
            ("/static/../login.py", 404),
        ):
            assert (await client.get(path)).status_code == status, path


def test_a_default_install_listens_on_loopback_alone(tmp_path: Path) -> None:
    served = Served(tmp_path, f"sqlite:///{tmp_path}/jobs.db")
    try:
        process = served.start()
        inodes = {path.readlink().name for path in Path(f"/proc/{process.pid}/fd").iterdir() if path.is_symlink()}
        rows = [
            line.split() for file in ("tcp", "tcp6") for line in Path(f"/proc/net/{file}").read_text().split("\n")[1:]
        ]
        addresses = {row[1] for row in rows if row and row[3] == "0A" and f"socket:[{row[9]}]" in inodes}
        assert addresses == {f"0100007F:{served.port:04X}"}
    finally:
        served.end()


@pytest.fixture
def nginx(tmp_path: Path) -> Iterator[tuple[int, int]]:
    """The ports of a proxy with TLS, and of what it expects behind it."""
    if NGINX is None:
        pytest.skip("there is no nginx here")
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "2"]
    files = ["-keyout", str(tmp_path / "key.pem"), "-out", str(tmp_path / "cert.pem")]
    subprocess.run([*words, *files], check=True, capture_output=True)
    port, behind = free_port(), free_port()
    (tmp_path / "nginx.conf").write_text(CONFIG.format(folder=tmp_path, port=port, behind=behind))
    process = subprocess.Popen(
        [NGINX, "-p", str(tmp_path), "-c", str(tmp_path / "nginx.conf"), "-g", "daemon off;"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    yield port, behind
    process.terminate()
    process.wait(20)


def test_tls_by_nginx(nginx: tuple[int, int], tmp_path: Path) -> None:
    port, behind = nginx
    served = Served(tmp_path, f"sqlite:///{tmp_path}/jobs.db")
    served.port = behind
    try:
        served.start("--proxy", "127.0.0.1")
        served.log_in()
        token = served.client.headers["authorization"].removeprefix("Bearer ")
        with httpx.Client(base_url=f"https://127.0.0.1:{port}", verify=False) as client:
            until(lambda: client.get("/readyz").status_code == 200, "the proxy answers")
            assert client.get("/api/v1/jobs", headers=served.client.headers).status_code == 200
            logged_in = client.post("/login", data={"token": token}, headers={"origin": str(client.base_url)})
            assert logged_in.status_code == 303, logged_in.text
            assert logged_in.headers["set-cookie"].startswith("__Host-windlass=")
            assert client.get("/api/v1/jobs").status_code == 200
    finally:
        served.end()
