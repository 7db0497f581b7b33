"""Another version of Windlass to run beside this one: a copy with one more step of its tables and keys."""

import shutil
from pathlib import Path

import windlass

STEP = "9000_tomorrow"
_SQLITE = """
ALTER TABLE windlass_jobs ADD COLUMN of_tomorrow TEXT;
ALTER TABLE windlass_history ADD COLUMN of_tomorrow TEXT DEFAULT 'x';
CREATE TABLE windlass_tomorrow (id INTEGER PRIMARY KEY);
CREATE INDEX windlass_jobs_tomorrow ON windlass_jobs (of_tomorrow);
"""
_REDIS_STEPS = '(Step("0001_initial"),)'


def make_release(folder: Path, *, breaking: bool = False) -> Path:
    """Where Python finds it, if it is told to look there first."""
    copy = folder / "windlass"
    shutil.copytree(Path(windlass.__file__).parent, copy)
    said = f"-- A step of tomorrow.\n-- breaking: {'yes' if breaking else 'no'}\n"
    (copy / f"store/sqlite/migrations/{STEP}.sql").write_text(said + _SQLITE)
    postgres = _SQLITE.replace("ON windlass_", "ON windlass.").replace("TABLE windlass_", "TABLE windlass.")
    for place in ("", "yugabyte/"):
        (copy / f"store/postgres/migrations/{place}{STEP}.sql").write_text(said + postgres)
    _add_redis_step(copy / "store/redis/records/migrate.py", breaking=breaking)
    return folder


def _add_redis_step(path: Path, *, breaking: bool) -> None:
    text, change = path.read_text(), 'lambda access: access.command("HSET", "meta", "of_tomorrow", "x")'
    assert text.count(_REDIS_STEPS) == 1
    path.write_text(text.replace(_REDIS_STEPS, f'(Step("0001_initial"), Step("{STEP}", {change}, {breaking}))'))
