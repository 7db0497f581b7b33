"""The link that `windlass dev` prints: it logs a browser in once, without a token to copy."""

import hashlib
import hmac

from windlass.client.app import App
from windlass.core.moments import DAY
from windlass.core.tokens import link_code

KIND = "login_link"


async def spend(app: App, development: str | None, code: str) -> bool:
    """Whether this is the code of this run, used for the first time. The store keeps its use over a restart."""
    if development is None or not hmac.compare_digest(link_code(development).encode(), code.encode()):
        return False
    documents = (await app._ready()).documents
    return await documents.add(KIND, hashlib.sha256(code.encode()).hexdigest(), "{}", DAY) is None
