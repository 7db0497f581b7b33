"""A Django project with the server beside it, by ASGI and by WSGI: prints what its visitors get, as JSON.

python -m tests.server.django_host STORE DATABASE
"""

import asyncio
import json
import sys
from collections.abc import Callable
from typing import Any

import django
import httpx
from asgiref.sync import sync_to_async
from django.conf import settings

PREFIX = "/jobs"
PATHS = ("/", f"{PREFIX}/", f"{PREFIX}/api/v1/jobs", f"{PREFIX}/api/v1/events?seconds=0")

settings.configure(
    SECRET_KEY="s",
    ALLOWED_HOSTS=["*"],
    ROOT_URLCONF="tests.server.django_urls",
    INSTALLED_APPS=["django.contrib.auth", "django.contrib.contenttypes", "django.contrib.sessions"],
    MIDDLEWARE=["django.contrib.sessions.middleware.SessionMiddleware"],
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[2]}},
)
django.setup()

from django.contrib.auth import get_user  # noqa: E402
from django.contrib.auth.models import User  # noqa: E402
from django.contrib.sessions.backends.db import SessionStore  # noqa: E402
from django.core.asgi import get_asgi_application  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.core.wsgi import get_wsgi_application  # noqa: E402
from django.http import HttpRequest  # noqa: E402
from django.test import Client  # noqa: E402
from starlette.applications import Starlette  # noqa: E402
from starlette.requests import Request  # noqa: E402
from starlette.routing import Mount  # noqa: E402

from windlass import App  # noqa: E402
from windlass.server import asgi, wsgi  # noqa: E402


@sync_to_async
def auth(request: Request) -> tuple[str, list[str], list[str]] | None:
    """Staff, by their session of Django."""
    inner = HttpRequest()
    inner.session = SessionStore(request.cookies.get("sessionid"))
    user: Any = get_user(inner)
    return (user.get_username(), ["operate"], []) if user.is_active and user.is_staff else None


def by_wsgi(app: App) -> Callable[..., Any]:
    own, jobs = get_wsgi_application(), wsgi(app, auth=auth)

    def application(environ: dict[str, Any], start_response: Any) -> Any:
        if not environ["PATH_INFO"].startswith(PREFIX + "/"):
            return own(environ, start_response)
        environ["SCRIPT_NAME"] = environ.get("SCRIPT_NAME", "") + PREFIX
        environ["PATH_INFO"] = environ["PATH_INFO"].removeprefix(PREFIX)
        return jobs(environ, start_response)

    return application


async def by_asgi(app: App, cookies: dict[str, str]) -> list[int]:
    jobs = asgi(app, auth=auth)
    host = Starlette(routes=[Mount(PREFIX, jobs), Mount("/", get_asgi_application())])
    async with (
        jobs.lifespan(),
        httpx.AsyncClient(transport=httpx.ASGITransport(host), base_url="http://host", cookies=cookies) as client,
    ):
        return [(await client.get(path)).status_code for path in PATHS]


def main() -> None:
    call_command("migrate", verbosity=0)
    app = App(sys.argv[1])
    answers: dict[str, list[int]] = {}
    for name, is_staff in (("ada", True), ("bob", False)):
        browser = Client()
        browser.force_login(User.objects.create_user(name, is_staff=is_staff))
        cookies = {"sessionid": browser.cookies["sessionid"].value}
        with httpx.Client(
            transport=httpx.WSGITransport(by_wsgi(app)), base_url="http://host", cookies=cookies
        ) as client:
            answers[f"{name} by WSGI"] = [client.get(path).status_code for path in PATHS]
        answers[f"{name} by ASGI"] = asyncio.run(by_asgi(app, cookies))
    app.close()
    print(json.dumps(answers))


if __name__ == "__main__":
    main()
