"""using(connection="default"): Django's alias of a database."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("django")

PROGRAM = """
import sys
import django
from django.conf import settings
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}})
django.setup()
from django.db import connection, transaction
from windlass import App, InvalidOption

app = App(f"sqlite:///{sys.argv[1]}?driver=sqlite3")
@app.task
def work(number: int) -> None: ...
app.stats.counts()
with connection.cursor() as cursor:
    cursor.execute("CREATE TABLE orders (number INTEGER)")

with transaction.atomic():
    connection.cursor().execute("INSERT INTO orders VALUES (1)")
    work.using(connection="default").enqueue(1)
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
for wrong in ("default", "other"):
    try:
        work.using(connection=wrong).enqueue(4)
    except InvalidOption as error:
        print(error)
print(app.stats.counts().totals["pending"], "job")
app.close()
"""


def test_atomic_decides(path: Path) -> None:
    words = [sys.executable, "-c", PROGRAM, str(path)]
    reported = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    assert reported.stdout.splitlines() == [
        "connection: is in no transaction: begin one first; the jobs exist once you commit",
        "connection: 'other' is not an alias of DATABASES",
        "1 job",
    ]
