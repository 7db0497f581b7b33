"""The server in Flask and Django: under WSGI nothing waits, and pages poll."""

import io
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.support.addresses import on_sqlite
from windlass import App
from windlass.server import wsgi

pytestmark = on_sqlite
PREFIX = "/jobs"
ADA: tuple[str, list[str], list[str]] = ("ada", ["admin"], [])


def flask_host(served: Any) -> Any:
    from flask import Flask
    from werkzeug.middleware.dispatcher import DispatcherMiddleware

    flask = Flask(__name__)
    flask.add_url_rule("/", view_func=lambda: "home")
    return DispatcherMiddleware(flask.wsgi_app, {PREFIX: served})


@pytest.fixture
def browser(address: str) -> Iterator[httpx.Client]:
    app = App(address)

    @app.task(type="mail.welcome")
    async def welcome(user_id: int) -> None: ...

    host = flask_host(wsgi(app, auth=lambda request: ADA))
    with httpx.Client(transport=httpx.WSGITransport(host), base_url="http://host") as made:
        yield made
    app.close()


def test_pages_forms_and_the_api_work_and_pages_poll(browser: httpx.Client) -> None:
    page = browser.get(f"{PREFIX}/enqueue?type=mail.welcome", headers={"accept": "text/html"})
    assert page.status_code == 200
    assert f'data-root="{PREFIX}" data-live="poll"' in page.text
    links = re.findall(r"""(?:href|src|action)=["'](/[^"']*)""", page.text)
    assert [link for link in links if not link.startswith(f"{PREFIX}/")] == []
    found = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert found
    form = {"csrf": found[1], "type": "mail.welcome", "payload": '{"user_id": 1}'}
    made = browser.post(f"{PREFIX}/enqueue", data=form)
    assert (made.status_code, made.headers["location"].startswith(f"{PREFIX}/jobs/")) == (303, True)
    (job,) = browser.get(f"{PREFIX}/api/v1/jobs").json()["jobs"]
    assert made.headers["location"].endswith(job["id"])


def test_what_would_wait_is_refused(browser: httpx.Client) -> None:
    page = browser.get(f"{PREFIX}/enqueue?type=mail.welcome")
    token = re.search(r'name="csrf" value="([^"]+)"', page.text)
    assert token
    claim = {"worker": "w", "claim": 1, "queues": ["default"], "types": ["t"], "limit": 1, "wait": 5}
    answers = [
        browser.get(f"{PREFIX}/api/v1/events"),
        browser.post(f"{PREFIX}/api/v1/claims", json=claim, headers={"x-csrf-token": token[1]}),
    ]
    assert [(each.status_code, each.json()["code"]) for each in answers] == [(501, "needs_asgi")] * 2
    again = browser.post(f"{PREFIX}/api/v1/claims", json={**claim, "wait": 0}, headers={"x-csrf-token": token[1]})
    assert (again.status_code, again.json()["jobs"]) == (200, [])


class CountingInput(io.BytesIO):
    """A body, and how often it was read."""

    reads = 0

    def read(self, size: int | None = -1) -> bytes:
        self.reads += 1
        return super().read(size)


def test_a_body_that_ends_too_early_is_not_read_again_and_again(address: str) -> None:
    app = App(address)
    served: Any = wsgi(app, auth=lambda request: None)
    body, answers = CountingInput(b"csrf=1"), []
    environ = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/enqueue",
        "CONTENT_TYPE": "application/x-www-form-urlencoded",
        "CONTENT_LENGTH": "1000",
        "SERVER_NAME": "h",
        "SERVER_PORT": "80",
        "wsgi.input": body,
    }
    b"".join(served(environ, lambda status, *_: answers.append(status)))
    app.close()
    assert answers == ["400 Bad Request"]
    assert body.reads < 200


def test_each_process_gets_an_event_loop_of_its_own(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    app = App(address)
    served: Any = wsgi(app, auth=lambda request: ADA)

    def ask() -> Any:
        environ = {"REQUEST_METHOD": "GET", "PATH_INFO": "/healthz", "SERVER_NAME": "h", "SERVER_PORT": "80"}
        assert b"".join(served({**environ, "wsgi.input": io.BytesIO()}, lambda *_: None)) == b"ok\n"
        return served._made[1]

    first = ask()
    assert ask() is first
    monkeypatch.setattr("os.getpid", lambda: -1)
    assert ask() is not first
    app.close()


def test_beside_django_its_staff_has_access_and_others_have_none(address: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.server.django_host", address, str(tmp_path / "django.db")]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {
        "ada by WSGI": [200, 200, 200, 501],
        "ada by ASGI": [200, 200, 200, 200],
        "bob by WSGI": [200, 401, 401, 401],
        "bob by ASGI": [200, 401, 401, 401],
    }
