"""The prefix of a mounted server: removed from requests, and added to the paths in its answers.

The server itself uses paths without the prefix. Values in pages are escaped, so a quoted path after `href=` always
comes from a template.
"""

import html
import re
from collections.abc import MutableMapping
from typing import Any
from urllib.parse import quote

from starlette.types import Message, Scope, Send

from windlass.server.mount.host import ANSWER_KEY, CSRF_COOKIE, SCOPE_KEY, csrf_cookie

ROOT_KEY = "windlass.root"
"""In the scope of a request: its prefix, quoted as in a URL."""
_LINK = re.compile(rb"""(\s(?:href|src|action)=)(["'])/(?!/)""")
_PAGE = re.compile(rb"<html ")


def without_prefix(scope: Scope) -> Scope:
    """The scope of a request without the prefix, which is kept under ROOT_KEY."""
    root, path = str(scope.get("root_path", "")).rstrip("/"), str(scope["path"])
    is_within = path == root or path.startswith(f"{root}/")
    inner = {**scope, "path": (path[len(root) :] if is_within else path) or "/", "root_path": ""}
    inner.pop("app_root_path", None)
    inner[ROOT_KEY] = quote(root)
    return inner


class PrefixedAnswer:
    """Sends an answer with the prefix in its links and redirects, and the cookie for forms with each page."""

    def __init__(self, scope: Scope, send: Send, *, live: bool) -> None:
        self._scope = scope
        self._root: str = scope[ROOT_KEY]
        self._send = send
        self._live = live
        self._secure = scope.get("scheme") == "https"
        self._cookie, self._is_new = csrf_cookie(scope)
        scope[SCOPE_KEY] = self._cookie
        self._start: Message | None = None
        self._body: list[bytes] = []

    async def send(self, message: Message) -> None:
        """Send a message; a page is buffered until it is complete."""
        if message["type"] == "http.response.start":
            message = {**message, "headers": [self._header(*each) for each in message["headers"]]}
            if _is_page(message):
                self._start = message
                return
        elif self._start is not None and message["type"] == "http.response.body":
            self._body.append(message.get("body", b""))
            if not message.get("more_body", False):
                await self._send_page(self._start, b"".join(self._body))
            return
        await self._send(message)

    def _header(self, name: bytes, value: bytes) -> tuple[bytes, bytes]:
        is_path = value.startswith(b"/") and not value.startswith(b"//")
        if name == b"location" and is_path and ANSWER_KEY not in self._scope:
            return name, self._root.encode() + value
        return name, value

    async def _send_page(self, start: MutableMapping[str, Any], body: bytes) -> None:
        page = self._rewritten(body)
        headers = [each for each in start["headers"] if each[0] != b"content-length"]
        headers.append((b"content-length", b"%d" % len(page)))
        if self._is_new:
            headers.append((b"set-cookie", self._set_cookie().encode()))
        await self._send({**start, "headers": headers})
        await self._send({"type": "http.response.body", "body": page})

    def _rewritten(self, body: bytes) -> bytes:
        root = html.escape(self._root).encode()
        live = b"" if self._live else b'data-live="poll" '
        page = _LINK.sub(lambda found: found[1] + found[2] + root + b"/", body)
        return _PAGE.sub(lambda _: b'<html data-root="' + root + b'" ' + live, page, count=1)

    def _set_cookie(self) -> str:
        secure = "; Secure" if self._secure else ""
        return f"{CSRF_COOKIE}={self._cookie}; Path={self._root or '/'}; HttpOnly; SameSite=Strict{secure}"


def _is_page(start: Message) -> bool:
    return any(name == b"content-type" and value.startswith(b"text/html") for name, value in start["headers"])
