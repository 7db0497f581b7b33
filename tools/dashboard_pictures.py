"""Takes the pictures of the dashboard, light and dark, from the store of a shop at work."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.dashboard.browser import Browser, browsing
from tests.support.processes import until
from tests.support.servers.ports import free_port

from windlass.client.verbs.audit import Actor

SIZE = (1280, 860)
THEMES = ("light", "dark")


def take_dashboard(folder: Path, pictures: Path) -> None:
    """The overview, a job, and the types; the shop's store and module are in the folder."""
    from shop import app  # type: ignore[import-not-found]

    pages = {"overview": "/", "job": f"/jobs/{_changed_job()}", "types": "/types"}
    token = app.tokens.create("ann", ["admin"]).text
    with _served(folder) as url, browsing(pictures) as browser:
        browser.resize(SIZE)
        until(lambda: _logs_in(browser, url, token), "the server answers")
        for name, path in pages.items():
            for theme in THEMES:
                browser.resize(SIZE, theme)
                browser.open(path)
                until(lambda: browser.find("#theme").is_displayed(), "its script has run")
                browser.shoot(f"dashboard-{name}-{theme}")
    app.close()


def _changed_job() -> str:
    """A job whose payload an operator changed before it ran."""
    from shop import app, report

    id_ = report.using(delay=3600, tags=["finance"], tenant="acme").enqueue("2026-10", lines=[3, 5, 8]).id
    app.actor = Actor("ann", "dashboard")
    app.jobs.change(id_, payload={"month": "2026-10", "currency": "CHF", "lines": [3, 5, 8]})
    app.jobs.run_now(id_)
    until(lambda: app.jobs.get(id_).status == "completed", "the report is built")
    return str(id_)


def _logs_in(browser: Browser, url: str, token: str) -> bool:
    try:
        browser.log_in(url, token)
    except Exception:
        return False
    return True


@contextmanager
def _served(folder: Path) -> Iterator[str]:
    port = free_port()
    command = [sys.executable, "-m", "windlass", "serve", "shop:app", "--port", str(port), "--environment", "staging"]
    server = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()
