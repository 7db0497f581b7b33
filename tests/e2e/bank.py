"""A Django program whose handlers read from a PostgreSQL that is restarted meanwhile."""

import json
import os
import threading
from urllib.parse import urlsplit

import django
from asgiref.sync import sync_to_async
from django.conf import settings

PLACE = urlsplit(os.environ["BANK"])
settings.configure(
    DATABASES={
        "default": {
            "ENGINE": "django.db.backends.postgresql",
            "HOST": PLACE.hostname,
            "PORT": PLACE.port,
            "USER": PLACE.username,
            "NAME": PLACE.path[1:],
            **json.loads(os.environ["BANK_SETTINGS"]),
        }
    }
)
django.setup()

from django.db import connection  # noqa: E402

from windlass import App  # noqa: E402
from windlass.contrib.django import fresh_connections  # noqa: E402

THREADS = 4
app = App("sqlite:///jobs.db")
if "BANK_FRESH" in os.environ:
    fresh_connections(app)
together = threading.Barrier(THREADS)


def ask() -> int:
    """The process of the server that answers."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        return int(cursor.fetchone()[0])


@app.task
def read() -> int:
    together.wait(30)  # so that every thread has one
    return ask()


@app.task
async def aread() -> int:
    return int(await sync_to_async(ask)())


@app.task(run_in="process")
def read_in_process() -> int:
    return ask()
