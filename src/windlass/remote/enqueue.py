"""Jobs that are enqueued through the server."""

from collections.abc import Sequence
from typing import Any

import msgspec

from windlass.core.graphs.ids import FLOW_TYPE
from windlass.core.groups.ids import is_group_id
from windlass.core.jobs.job import Enqueued, NewJob
from windlass.core.moments import to_datetime
from windlass.core.names import with_field
from windlass.errors import InvalidInput, InvalidOption, PayloadTooLarge
from windlass.remote.connection import Connection
from windlass.server.api.enqueue import MAX_BULK, MAX_BULK_BODY, BulkReceipt
from windlass.server.api.job_options import in_seconds, options_of


async def enqueue(connection: Connection, jobs: Sequence[NewJob], seconds: float | None = None) -> list[Enqueued]:
    """Store all jobs or none; raises what the verb of a store raises."""
    if len(jobs) > MAX_BULK:
        raise InvalidOption("jobs", f"{len(jobs):,} jobs; at most {MAX_BULK:,} at once through a server")
    body = msgspec.json.encode({"jobs": [_request(job) for job in jobs]})
    if len(body) > MAX_BULK_BODY:
        problem = f"is {len(body):,} bytes of JSON; a server takes at most {MAX_BULK_BODY:,} at once"
        raise PayloadTooLarge("payload" if len(jobs) == 1 else "jobs", problem, limit=MAX_BULK_BODY)
    try:
        receipt = await connection.call("POST", "/jobs/bulk", BulkReceipt, body=msgspec.Raw(body), seconds=seconds)
    except InvalidInput as error:
        if len(jobs) > 1:
            raise
        raise with_field(error, error.field.removeprefix("jobs[0].")) from None
    return [Enqueued(each.id, each.existing) for each in receipt.jobs]


def _request(job: NewJob) -> dict[str, Any]:
    if job.parents or job.result_params or job.flow:
        what = "group" if job.flow and is_group_id(job.flow) else "chain"
        what = "flow" if job.type == FLOW_TYPE else what
        raise InvalidOption(what, "cannot be enqueued through a server")
    values = {
        "id": job.id,
        "delay": in_seconds(job.delay) or None,
        "run_at": None if job.run_at is None else to_datetime(job.run_at),
        "idempotency_key": job.idempotency_key,
        "idempotency_window": in_seconds(job.idempotency_window),
        "on_conflict": job.on_conflict if job.idempotency_key else None,
        "parent": job.parent,
    }
    return {**template(job), **{name: value for name, value in values.items() if value is not None}}


def template(job: NewJob) -> dict[str, Any]:
    """The fields that a request has for every job."""
    return {"type": job.type, "payload": msgspec.Raw(job.payload.encode()), **options_of(job)}
