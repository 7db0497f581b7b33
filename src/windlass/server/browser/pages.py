"""The log-in page, and the documentation of the API: no scripts, nothing from other servers."""

import html
import re
from typing import Any

import msgspec
from starlette.responses import Response

from windlass.server.dispatch import SAFE_HEADERS

_POLICY = "default-src 'none'; style-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"


def html_response(text: str, status: int = 200, retry_after: int | None = None) -> Response:
    """A page with its security headers."""
    headers = {**SAFE_HEADERS, "content-security-policy": _POLICY}
    if retry_after is not None:
        headers["retry-after"] = str(retry_after)
    return Response(text, status, headers, "text/html; charset=utf-8")


def login_page(following: str, problem: str = "") -> str:
    """The form that takes a token."""
    message = f"<p class='message bad' role='alert'>{html.escape(problem)}</p>" if problem else ""
    return _page(
        "Log in",
        "<main><section class='panel card'><h1>Windlass</h1>"
        f"<form method='post' action='/login'>{message}"
        f"<input type='hidden' name='next' value='{html.escape(following)}'>"
        "<div class='fields one'><label for='token'>Token"
        "<input id='token' name='token' type='password' autocomplete='current-password' required autofocus>"
        "</label></div>"
        "<button class='main'>Log in</button></form>"
        "<p class='soft after'>A new token: <code>windlass token create NAME --scope admin</code></p>"
        "</section></main>",
        style="dashboard.css",
    )


def docs_page(described: dict[str, Any], csrf: str) -> str:
    """The OpenAPI document as a page; `csrf` is the CSRF token of the session, empty without one."""
    paths = "".join(
        _operation(method.upper(), path, operation)
        for path, methods in described["paths"].items()
        for method, operation in methods.items()
    )
    types = "".join(
        f"<details id='{html.escape(name)}'><summary>{html.escape(name)}</summary><pre>"
        f"{html.escape(msgspec.json.format(msgspec.json.encode(schema), indent=2).decode())}</pre></details>"
        for name, schema in described["components"]["schemas"].items()
    )
    log_out = (
        "<form method='post' action='/logout'>"
        f"<input type='hidden' name='csrf' value='{csrf}'><button>Log out</button></form>"
    )
    return _page(
        "Windlass API",
        f"<header><h1>Windlass API</h1>{log_out if csrf else ''}</header>"
        "<p>For programs: <a href='/api/v1/openapi.json'>openapi.json</a>. Every call needs a token: "
        f"<code>Authorization: Bearer wl_…</code></p><main>{paths}</main><h2>Types</h2>{types}",
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    parameters = ", ".join(f"{each['name']} ({each['in']})" for each in operation["parameters"])
    body = operation.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    rows = [("Parameters", html.escape(parameters)), ("Body", _type_link(body))]
    answers = [
        f"{status} {_type_link(answer.get('content', {}).get('application/json', {}).get('schema', {}))}"
        for status, answer in operation["responses"].items()
        if int(status) < 400
    ]
    rows.append(("Answers", ", ".join(answers)))
    terms = "".join(f"<dt>{name}</dt><dd>{text}</dd>" for name, text in rows if text)
    return (
        f"<section><h3><span class='method'>{method}</span> <code>{html.escape(path)}</code></h3>"
        f"<p>{_marked(operation['description'])}</p><dl>{terms}</dl></section>"
    )


def _marked(text: str) -> str:
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _type_link(schema: dict[str, Any]) -> str:
    name = html.escape(str(schema.get("$ref", "")).rpartition("/")[2])
    return f"<a href='#{name}'>{name}</a>" if name else ""


def _page(title: str, body: str, style: str = "windlass.css") -> str:
    return (
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>{title}</title><link rel='stylesheet' href='/static/{style}'></head>"
        f"<body class='alone'>{body}</body></html>"
    )


STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }
body { margin: 2rem auto; max-width: 60rem; padding: 0 1rem }
header { display: flex; justify-content: space-between; align-items: center }
section { border-top: 1px solid #8885; padding: .75rem 0 }
h3 { margin: 0; font-weight: 500 }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700 }
p { margin: .25rem 0 }
dl { display: grid; grid-template-columns: 6rem 1fr; margin: .25rem 0 0; font-size: .9rem }
dd { margin: 0; overflow-wrap: anywhere }
pre { overflow-x: auto; padding: 1rem; background: #8881 }
button, input { font: inherit; padding: .5rem .75rem }
"""
