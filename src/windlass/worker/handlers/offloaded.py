"""Payloads and results too large for a row, in a runner. The calls block: see `off_loop`."""

import msgspec

from windlass.blobs.offload import unavailable
from windlass.client.runtime.offloaded import NO_BLOBS
from windlass.core.codec import UNSTORABLE, encode, problem_of_result
from windlass.core.ids import JobId
from windlass.core.jobs.dependencies import parent_results, with_results
from windlass.core.reference import PREFIX, parse_reference
from windlass.core.text import cut
from windlass.errors import InvalidPayload
from windlass.worker.handlers.work import Work


def is_offloaded(work: Work) -> bool:
    """Whether the row holds a reference instead of the payload, or instead of a parent's result."""
    payload, inputs = work.claimed.payload, work.claimed.parent_results
    # The row may have been edited by hand: then it may be of any type.
    return (isinstance(payload, str) and payload.startswith(PREFIX)) or (
        inputs is not None and isinstance(inputs, str) and f'"{PREFIX}' in inputs
    )


def fetch_payload(work: Work) -> None:
    """Replace references by the payload and the parents' results.

    Raises BlobUnavailable, which is retried like any failure: the folder may not be mounted yet.
    """
    work.claimed = msgspec.structs.replace(work.claimed, payload=_whole(work, work.claimed.id, work.claimed.payload))
    if missing_result(work) is None:
        insert_parent_results(work)


def missing_result(work: Work) -> InvalidPayload | None:
    """The error for a parent's result that was not kept; None if all were."""
    if work.claimed.result_params is None:
        return None
    for name, (parent, text) in parent_results(work.claimed.result_params, work.claimed.parent_results).items():
        if (problem := problem_of_result(text)) is not None:
            return InvalidPayload(name, f"gets the result of {parent}, which was not kept: {problem}")
    return None


def insert_parent_results(work: Work) -> None:
    """Put the results of parents into the payload, once."""
    claimed = work.claimed
    if claimed.result_params is None:
        return
    texts = parent_results(claimed.result_params, claimed.parent_results)
    results = [(name, _whole(work, parent, text)) for name, (parent, text) in texts.items()]
    payload = with_results(claimed.payload, results)
    work.claimed = msgspec.structs.replace(claimed, payload=payload, result_params=None, parent_results=None)


def _whole(work: Work, owner: JobId, stored: str) -> str:
    """The stored text, or the text behind its reference."""
    reference = parse_reference(stored)
    if reference is None:
        return stored  # or not a reference: it will not fit the task, which is reported
    if work.blobs is None:
        raise unavailable(owner, reference, NO_BLOBS)
    return work.blobs.fetch(owner, reference)


def offload_result(work: Work, text: str) -> str:
    """Offload a large result; returns the reference, or why it could not be kept."""
    try:
        blobs = work.blobs
        return text if blobs is None else blobs.keep(work.claimed.id, "result", text)
    except Exception as error:
        return unstorable(error)


def unstorable(error: BaseException) -> str:
    """The note that is stored instead of a result that cannot be kept: the job has completed anyway."""
    return encode({UNSTORABLE: cut(str(error) or type(error).__name__, 500)}, "result")
