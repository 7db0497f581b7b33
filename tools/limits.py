"""Defaults and limits for the reference, each taken from the constant that the code uses."""

from windlass.client.app import CLIENT_DEADLINE
from windlass.client.tasks import context
from windlass.client.verbs.filters import MAX_PAGE
from windlass.coordinator.duties import OLD_SECONDS
from windlass.core import codec, names
from windlass.core.flow.queue import DEFAULT_RETENTION, TOMBSTONE_RETENTION
from windlass.core.hints import HINT_RATE
from windlass.core.jobs import job, outcome
from windlass.core.jobs.retry import Exponential
from windlass.core.moments import MAX_DURATION, show_duration
from windlass.core.reference import MAX_BLOB_SIZE
from windlass.store.open import DEFAULT_ADDRESS
from windlass.store.postgres.connection.address import DEFAULT_SCHEMA, LIBPQ, MAX_CONNECTIONS
from windlass.store.postgres.connection.server import CONNECT_SECONDS
from windlass.store.postgres.doctor.server import NEWEST, OLDEST
from windlass.store.postgres.store import CONNECTIONS
from windlass.store.sqlite.address import DURABILITY, Driver
from windlass.worker.config import MAX_PROCESSES, MAX_SLOTS, WorkerConfig
from windlass.worker.runner.claim_loop import MAX_POLL
from windlass.worker.runner.held_jobs import MAX_PREFETCH_WAIT


def sections() -> dict[str, dict[str, str]]:
    """Title → what → how much."""
    return {
        "Worker": _worker(),
        "Queues": _queues(),
        "Limits": _limits(),
        "Names": _names(),
        "Store": _store(),
        "PostgreSQL": _postgres(),
    }


def _worker() -> dict[str, str]:
    config = WorkerConfig(app="")
    return {
        "slots per runner (`--concurrency`)": f"{config.concurrency}; from 1 to {MAX_SLOTS:,}",
        "runners (`--processes`)": f"{config.processes}; from 1 to {MAX_PROCESSES}",
        "lease (`--lease`)": f"{show_duration(config.lease)}; at least 500ms",
        "beat": f"{show_duration(config.beat)}: a third of the lease",
        "drain (`--drain`)": show_duration(config.drain),
        "queues (`--queues`)": "every queue that the app names, and `default`",
        "poll when nothing wakes us": f"adaptive, at most {MAX_POLL:g}s",
        "a prefetched job waits for a slot": f"at most {show_duration(MAX_PREFETCH_WAIT)}, then it is requeued",
    }


def _queues() -> dict[str, str]:
    policy = Exponential()
    kept = {f"retention, {status}": show_duration(keep) for status, keep in DEFAULT_RETENTION.items()}
    return {
        "max_attempts": f"{job.DEFAULT_MAX_ATTEMPTS}; from 1 to {job.MAX_ATTEMPTS:,}",
        "retry": f"exponential, base {policy.base:g}s, factor {policy.factor:g}, cap {policy.cap:g}s, "
        f"jitter ±{policy.jitter:.0%}",
        **kept,
        "crashes while alone after which a job is dead": str(outcome.CRASH_LIMIT),
        "an id is remembered after its job is dropped": f"until {show_duration(TOMBSTONE_RETENTION)} after its end",
    }


def _limits() -> dict[str, str]:
    return {
        "payload, result, meta": f"{codec.INLINE_LIMIT:,} bytes of JSON each",
        "payload, result, with `blobs`": f"{MAX_BLOB_SIZE:,} bytes of JSON each",
        "depth of a payload": f"{codec.MAX_DEPTH} levels",
        "values in one argument": f"{codec.MAX_NODES:,}; with `blobs`, {MAX_BLOB_SIZE:,}",
        "integers": "64 bits, signed",
        "priority": f"{job.MIN_PRIORITY} to {job.MAX_PRIORITY}, default 0, higher first",
        "tags of a job": str(names.MAX_TAGS),
        "run_at": "1970 to 2200, with a time zone",
        "durations": f"0 to {show_duration(MAX_DURATION)}; seconds, a timedelta, or text such as `30s` `5m` `7d`",
        "a page of `list`": f"{MAX_PAGE:,} jobs",
        "a line of `ctx.log`": f"{context.MAX_LINE_LENGTH:,} characters",
        "the note of `ctx.progress`": f"{context.MAX_NOTE_LENGTH:,} characters",
        "a client's call": f"gives up after {CLIENT_DEADLINE:g}s (`App(deadline=...)`)",
    }


def _names() -> dict[str, str]:
    return {
        "queue, type, tag, tenant": f"1 to {names.MAX_NAME_LENGTH} of `A-Z a-z 0-9 _ . : -`, beginning with "
        "a letter, a digit or `_`, without `..`",
        "idempotency key": f"1 to {names.MAX_KEY_LENGTH:,} bytes of any text without NUL",
        "job id": "a UUID; the client makes UUIDv7",
        "default queue": f"`{job.DEFAULT_QUEUE}`",
    }


def _store() -> dict[str, str]:
    return {
        "address": "what `App(...)` or `--store` gives, else the app's, else `WINDLASS_STORE`, else `store` in "
        "`windlass.toml` or `[tool.windlass]`",
        "default address": f"`{DEFAULT_ADDRESS}`; no command makes that file but a worker, or `migrate` with an app",
        "a relative file or folder": "is one of the folder in which the app is made, or the command started",
        "SQLite: `?durability=`": " or ".join(f"`{each}`" for each in DURABILITY) + ", default `full`",
        "SQLite: `?driver=`": " or ".join(f"`{each}`" for each in Driver) + f", default `{Driver.APSW}`",
        "SQLite: `?allow_network_fs=`": "`true` or `false`, default `false`",
        "`blobs`, `WINDLASS_BLOBS`": "a folder, as `./blobs` or `file:///srv/shop/blobs`; default none",
        "`webhook_networks`, `WINDLASS_WEBHOOK_NETWORKS`": "networks that webhooks may reach although they are not "
        "public, as `10.20.0.0/16,127.0.0.0/8`; default none",
        "a blob that no job refers to": f"is removed when it is {OLD_SECONDS / 3600:g} hours old",
    }


def _postgres() -> dict[str, str]:
    return {
        "versions": f"{OLDEST} to {NEWEST}",
        "`?schema=`": f"up to 63 of `a-z 0-9 _`, default `{DEFAULT_SCHEMA}`",
        "`?notify=`": "`on` or `off`, default `on`",
        "`?connections=`": f"1 to {MAX_CONNECTIONS} for each event loop, default {CONNECTIONS}, of a supervisor 1 "
        "and 1 for leases",
        "passed on to the driver": ", ".join(f"`{name}`" for name in LIBPQ),
        "a connection must be made within": f"{CONNECT_SECONDS:g}s",
        "hints of a process": f"{HINT_RATE}; more are gathered",
    }
