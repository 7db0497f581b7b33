"""The header Host: a server on loopback answers for this machine and the names it was given, and for no others."""

import pytest

from tests.server.test_proxies import listening
from windlass import App
from windlass.server.access import serves_host


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "127.0.0.1:8321", "[::1]", "[::1]:8321", "10.1.2.3", "localhost", "LOCALHOST:80", "a.localhost."],
)
def test_addresses_and_localhost_are_this_server(host: str) -> None:
    assert serves_host(host, ())


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8321", "localhost.evil.example", "127.0.0.1.evil.example", "[evil]", ":80"]
)
def test_a_name_is_this_server_only_if_it_was_given(host: str) -> None:
    assert not serves_host(host, ())
    assert not serves_host(host, ("jobs.example.com",))


def test_a_given_name_is_this_server_in_any_case_and_with_any_port() -> None:
    assert serves_host("Jobs.Example.com:443", ("jobs.example.com",))
    assert serves_host("jobs.example.com.", ("jobs.example.com",))


async def test_a_page_whose_name_points_to_this_machine_is_refused_everywhere(app: App) -> None:
    token = (await app.tokens.acreate("t", ["admin"])).text
    async with listening(app) as client:
        for method, path in (
            ("GET", "/"),
            ("GET", "/login"),
            ("GET", "/healthz"),
            ("GET", "/api/v1/jobs"),
            ("POST", "/api/v1/jobs"),
            ("GET", "/api/v1/openapi.json"),
        ):
            headers = {"host": "evil.example:8321", "authorization": f"Bearer {token}"}
            answer = await client.request(method, path, json={"type": "mail.welcome"}, headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (421, "misdirected_request"), path
        assert (await client.get("/api/v1/jobs", headers={"authorization": f"Bearer {token}"})).json()["jobs"] == []


async def test_a_given_name_and_a_named_proxy_are_answered(app: App) -> None:
    named = {"host": "jobs.example.com"}
    async with listening(app, hosts=("Jobs.example.com",)) as client:
        assert (await client.get("/healthz", headers=named)).status_code == 200
        assert (await client.get("/healthz", headers={"host": "evil.example"})).status_code == 421
    async with listening(app, "127.0.0.1") as client:
        assert (await client.get("/healthz", headers=named)).status_code == 200
