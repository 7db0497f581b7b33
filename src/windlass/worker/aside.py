"""Payloads and results too large for a row, as a runner meets them. The calls block: see `off_loop`."""

import msgspec

from windlass.blobs.offload import unavailable
from windlass.client.aside import NO_BLOBS
from windlass.core.chain import result_texts, with_results
from windlass.core.codec import encode
from windlass.core.control import Dead
from windlass.core.ids import JobId
from windlass.core.reference import PREFIX, parse_reference
from windlass.core.text import cut
from windlass.worker.work import Work

_LOST = "unstorable_result"


def is_aside(work: Work) -> bool:
    """Whether the row holds a reference instead of the payload, or instead of a result that goes into it."""
    payload, inputs = work.claimed.payload, work.claimed.inputs
    # Somebody may have edited the row: then it is whatever it is.
    return (isinstance(payload, str) and payload.startswith(PREFIX)) or (
        isinstance(inputs, str) and f'"{PREFIX}' in inputs
    )


def fetch_payload(work: Work) -> None:
    """Put the payload, and the results that go into it, where the references to them were.

    Raises BlobUnavailable, which is tried again like any failure: the place may just not be mounted yet.
    """
    work.claimed = msgspec.structs.replace(work.claimed, payload=_whole(work, work.claimed.id, work.claimed.payload))
    put_results_in(work)


def put_results_in(work: Work) -> None:
    """Put the results of the jobs before this one into its payload, once.

    Raises Dead if there is none, since it could not be kept: what stands in its place is not for a handler.
    """
    claimed = work.claimed
    if claimed.takes is None:
        return
    texts = result_texts(claimed.takes, claimed.inputs)
    if lost := [(name, parent) for name, (parent, text) in texts.items() if text.startswith(f'{{"{_LOST}":')]:
        raise Dead("{} is the result of job {}, which could not be kept: see that job".format(*lost[0]))
    results = [(name, _whole(work, parent, text)) for name, (parent, text) in texts.items()]
    payload = with_results(claimed.payload, results)
    work.claimed = msgspec.structs.replace(claimed, payload=payload, takes=None, inputs=None)


def _whole(work: Work, owner: JobId, stored: str) -> str:
    """The text that is stored, or that the reference in its place leads to."""
    reference = parse_reference(stored)
    if reference is None:
        return stored  # or not one of ours: it will not fit the task, and that is told
    if work.blobs is None:
        raise unavailable(owner, reference, NO_BLOBS)
    return work.blobs.fetch(owner, reference)


def keep_result(work: Work, text: str) -> str:
    """Put a large result aside: the reference to it, or why it could not be kept."""
    try:
        blobs = work.blobs
        return text if blobs is None else blobs.keep(work.claimed.id, "result", text)
    except Exception as error:
        return unstorable(error)


def unstorable(error: BaseException) -> str:
    """What stands in the place of a result that cannot be kept: the work is done, and this does not undo it."""
    return encode({_LOST: cut(str(error) or type(error).__name__, 500)}, "result")
