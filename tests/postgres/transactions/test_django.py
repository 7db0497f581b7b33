"""using(connection="default") on PostgreSQL: Django's alias of a database, over psycopg 3 and psycopg2."""

import subprocess
import sys

import pytest

pytest.importorskip("django")

PROGRAM = """
import sys
url, driver, options = sys.argv[1], sys.argv[2], eval(sys.argv[3])
if driver == "psycopg2":
    sys.modules["psycopg"] = None  # as if it were not installed: Django then takes the other
from urllib.parse import urlsplit
import django
from django.conf import settings
parts = urlsplit(url)
place = {"HOST": parts.hostname, "PORT": parts.port, "USER": parts.username, "PASSWORD": parts.password or ""}
base = {"ENGINE": "django.db.backends.postgresql", **place, "OPTIONS": options}
settings.configure(DATABASES={
    "default": {**base, "NAME": parts.path[1:]},
    "elsewhere": {**base, "NAME": "postgres"},
    "file": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"},
})
django.setup()
from django.db import OperationalError, connection, connections, transaction
from windlass import App, EnqueueFailed, InvalidOption

app = App(url)
@app.task
def work(number: int) -> None: ...
assert connection.connection is None

with transaction.atomic():
    connection.cursor().execute("INSERT INTO orders VALUES (1)")
    work.using(connection="default").enqueue(1)
assert type(connection.connection).__module__.startswith(driver), type(connection.connection)
try:
    with transaction.atomic():
        work.using(connection="default").enqueue(2)
        raise ZeroDivisionError
except ZeroDivisionError:
    pass
with transaction.atomic():
    try:
        with transaction.atomic():
            work.using(connection="default").enqueue(3)
            raise ZeroDivisionError
    except ZeroDivisionError:
        pass
    keyed = work.using(connection="default", idempotency_key="k")
    assert keyed.enqueue(4).id == keyed.enqueue(5).id
    app.enqueue_many([work.job(n) for n in (6, 7)], connection="default")
for wrong in ("default", "other", "file"):
    try:
        work.using(connection=wrong).enqueue(8)
    except InvalidOption as error:
        print(error)
try:
    with transaction.atomic("elsewhere"):
        work.using(connection="elsewhere").enqueue(8)
except InvalidOption as error:
    print(str(error).partition(":")[2].partition("the jobs")[0])
try:
    with transaction.atomic():
        transaction.set_rollback(True)
        connection.needs_rollback = True
        work.using(connection="default").enqueue(9)
except EnqueueFailed as error:
    print("needs a rollback")
try:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            cursor.execute("SELECT 1")
        work.using(idempotency_key="late").enqueue(10)
        work.using(connection="default", idempotency_key="late").enqueue(11)
except OperationalError as error:
    print(error)
print(app.stats.counts().totals["pending"], "jobs")
app.close()
connections.close_all()
"""

REPORTED = [
    "connection: is in no transaction: use `with transaction.atomic():`; the jobs exist once you commit",
    "connection: 'other' is not an alias of DATABASES",
    "connection: 'file' is not of PostgreSQL but of sqlite3.Connection",
    " is open on a database without the schema windlass: ",
    "needs a rollback",
    "could not serialize access due to concurrent update",
    "5 jobs",
]


@pytest.mark.parametrize(
    ("driver", "options"), [("psycopg", {}), ("psycopg", {"server_side_binding": True}), ("psycopg2", {})]
)
def test_atomic_decides(url: str, driver: str, options: dict[str, bool]) -> None:
    words = [sys.executable, "-c", PROGRAM, url, driver, repr(options)]
    reported = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert reported.stderr == ""
    assert [line for line in reported.stdout.splitlines() if line] == REPORTED
