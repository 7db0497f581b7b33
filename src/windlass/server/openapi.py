"""The OpenAPI document, made from the operations and the types that they decode and encode."""

from collections.abc import Iterable
from typing import Any

import msgspec

from windlass.server.operation import PREFIX, Operation
from windlass.server.problem import MEDIA_TYPE, Problem
from windlass.version import __version__

_REFUSALS = {
    "400": "The request cannot be read",
    "401": "No valid token",
    "403": "The token lacks the scope, or is limited to other queues or types",
    "408": "The body did not come in time",
    "421": "This server does not answer for that host",
    "429": "Too many requests",
    "503": "The store does not answer; `maybe_done` says whether the call may have taken effect",
}
_MORE = {
    "404": "It does not exist",
    "409": "Its state does not allow this",
    "412": "It has changed since (If-Match)",
    "413": "Too large",
    "415": "Not application/json",
    "422": "A field is wrong; nothing was stored",
}


def document(operations: Iterable[Operation]) -> dict[str, Any]:
    """The OpenAPI 3.1 document."""
    operations = tuple(operations)
    types = {Problem} | {
        kind for each in operations for kind in (*each.answers.values(), each.body) if kind is not None
    }
    ordered = sorted(types, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(ordered, ref_template="#/components/schemas/{name}")
    refs = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for each in operations:
        paths.setdefault(PREFIX + each.path, {})[each.method.lower()] = _operation(each, refs)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Windlass",
            "version": __version__,
            "description": "A job queue: jobs, queues, schedules and statistics.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _operation(operation: Operation, refs: dict[Any, Any]) -> dict[str, Any]:
    described: dict[str, Any] = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": f"{operation.handler.__doc__ or ''} Scope: `{operation.scope}`.".strip(),
        "parameters": [*_path_parameters(operation), *_query_parameters(operation), *_headers(operation)],
        "responses": _responses(operation, refs),
    }
    if operation.body is not None:
        content = {"application/json": {"schema": refs[operation.body]}}
        described["requestBody"] = {"required": not operation.optional_body, "content": content}
    return described


def _responses(operation: Operation, refs: dict[Any, Any]) -> dict[str, Any]:
    problem = {MEDIA_TYPE: {"schema": refs[Problem]}}
    refusals = {status: {"description": text, "content": problem} for status, text in {**_REFUSALS, **_MORE}.items()}
    answers: dict[str, Any] = {}
    for status, kind in operation.answers.items():
        answer: dict[str, Any] = {"description": operation.summary}
        if kind is not None:
            answer["content"] = {operation.media_type: {"schema": refs[kind]}}
        answers[str(status)] = answer
    return {**answers, **refusals}


def _path_parameters(operation: Operation) -> list[dict[str, Any]]:
    names = [part[1:-1] for part in operation.path.split("/") if part.startswith("{")]
    return [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names]


def _query_parameters(operation: Operation) -> list[dict[str, Any]]:
    if operation.query is None:
        return []
    (_,), components = msgspec.json.schema_components([operation.query])
    own = components[operation.query.__name__]
    return [
        {"name": name, "in": "query", "required": name in own["required"], "schema": _inlined(schema, components)}
        for name, schema in own["properties"].items()
    ]


def _headers(operation: Operation) -> list[dict[str, Any]]:
    return [{"name": name, "in": "header", "schema": {"type": "string"}} for name in operation.headers]


def _inlined(schema: Any, components: dict[str, Any]) -> Any:
    """A schema without references, for a parameter."""
    if isinstance(schema, dict):
        if "$ref" in schema:
            return _inlined(components[schema["$ref"].rpartition("/")[2]], components)
        return {name: _inlined(value, components) for name, value in schema.items()}
    return [_inlined(each, components) for each in schema] if isinstance(schema, list) else schema
