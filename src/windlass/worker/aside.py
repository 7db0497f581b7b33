"""Payloads and results too large for a row, as a runner meets them. The calls block: see `off_loop`."""

import msgspec

from windlass.blobs.offload import unavailable
from windlass.client.aside import NO_BLOBS
from windlass.core.codec import encode
from windlass.core.reference import PREFIX, parse_reference
from windlass.core.text import cut
from windlass.worker.work import Work


def is_aside(work: Work) -> bool:
    """Whether the row holds a reference instead of the payload."""
    payload = work.claimed.payload
    # Somebody may have edited the row: then it is whatever it is.
    return isinstance(payload, str) and payload.startswith(PREFIX)


def fetch_payload(work: Work) -> None:
    """Put the payload where the reference was.

    Raises BlobUnavailable, which is tried again like any failure: the place may just not be mounted yet.
    """
    reference = parse_reference(work.claimed.payload)
    if reference is None:
        return  # not one of ours: it will not fit the task, and that is told
    blobs = work.blobs
    if blobs is None:
        raise unavailable(work.claimed.id, reference, NO_BLOBS)
    payload = blobs.fetch(work.claimed.id, reference)
    work.claimed = msgspec.structs.replace(work.claimed, payload=payload)


def keep_result(work: Work, text: str) -> str:
    """Put a large result aside: the reference to it, or why it could not be kept."""
    try:
        blobs = work.blobs
        return text if blobs is None else blobs.keep(work.claimed.id, "result", text)
    except Exception as error:
        return unstorable(error)


def unstorable(error: BaseException) -> str:
    """What stands in the place of a result that cannot be kept: the work is done, and this does not undo it."""
    return encode({"unstorable_result": cut(str(error) or type(error).__name__, 500)}, "result")
