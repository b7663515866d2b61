"""The description of the service (OpenAPI 3.1), made from the table of routes."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from unmask.serving.body import schema_of
from unmask.serving.call import Route
from unmask.serving.refused import CAUSES
from unmask.version import __version__

# a text in the shape of Text Embeddings Inference, an object in OpenAI's
_REFUSAL = {
    "application/json": {
        "schema": {
            "type": "object", "required": ["error"],
            "properties": {
                "error": {"anyOf": [{"type": "string"}, {"type": "object"}]}, "error_type": {"type": "string"},
                "limit": {"type": "string"},
            },
        }
    }
}  # fmt: skip
REFUSED = (401, 403, 404, 405, 408, 413, 415, 422, 429, 500, 503)


def description(routes: Sequence[Route]) -> dict[str, Any]:
    """All routes with the schemas of their bodies."""
    bodies = {route.body.__name__: route.body for route in routes if route.body is not None}
    paths: dict[str, Any] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {"title": "unmask serve", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {name: schema_of(body) | {"description": _first(body)} for name, body in bodies.items()},
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{}, {"key": []}],
    }


def _operation(route: Route) -> dict[str, Any]:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    found: dict[str, Any] = {
        "operationId": route.path.strip("/").replace("/", "_").replace("{", "").replace("}", "") or "page",
        "summary": route.summary,
        "tags": [route.group],
        "parameters": [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in names],
        "responses": {"200": {"description": "The answer", "content": {media: {} for media in route.media}}}
        | {str(status): {"description": CAUSES[status], "content": _REFUSAL} for status in REFUSED},
    }
    if route.body is not None:
        schema = {"$ref": f"#/components/schemas/{route.body.__name__}"}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found


def _first(body: type) -> str:
    return (inspect.getdoc(body) or "").splitlines()[0]
