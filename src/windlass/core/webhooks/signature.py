"""Signatures of deliveries by the Standard Webhooks convention: HMAC-SHA256 over `id.timestamp.body`."""

import base64
import hashlib
import hmac
from collections.abc import Callable, Iterable

import msgspec

from windlass.core.moments import Micros

PREFIX = "whsec_"
SECRET_BYTES = 32


class Secret(msgspec.Struct, frozen=True, omit_defaults=True):
    """A secret, and until when it signs; None: until it is rotated."""

    text: str
    until: Micros | None = None

    def __repr__(self) -> str:
        return "Secret(…)"  # hidden, because a record may be part of a traceback or a log


def new_secret(random: Callable[[int], bytes]) -> str:
    """The text of a new secret, as receivers configure it."""
    return PREFIX + base64.b64encode(random(SECRET_BYTES)).decode()


def signed_headers(secrets: Iterable[str], id_: str, seconds: int, body: bytes) -> dict[str, str]:
    """The headers of a delivery, with a signature by each secret."""
    content = b"%s.%d.%s" % (id_.encode(), seconds, body)
    signatures = [f"v1,{_signature(secret, content)}" for secret in secrets]
    return {
        "webhook-id": id_,
        "webhook-timestamp": str(seconds),
        "webhook-signature": " ".join(signatures),
    }


def _signature(secret: str, content: bytes) -> str:
    key = base64.b64decode(secret.removeprefix(PREFIX))
    return base64.b64encode(hmac.new(key, content, hashlib.sha256).digest()).decode()
