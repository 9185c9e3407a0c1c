"""The description of the HTTP calls: an OpenAPI document, and a page that needs no other file.

Both are made from the calls (`calls.py`) and the descriptions of their messages.
"""

from __future__ import annotations

from functools import cache
from html import escape
from typing import Any

from google.protobuf.descriptor import Descriptor, FieldDescriptor

from gateway.calls import CALLS, PUBLISH, Call
from gateway.problems import CONTENT_TYPE, STATUSES, TYPE
from nearcast.wire.errors import CODES

_VERSION = "3.1.0"
_KINDS: dict[int, dict[str, Any]] = {
    FieldDescriptor.TYPE_DOUBLE: {"type": "number", "format": "double"},
    FieldDescriptor.TYPE_FIXED64: {"type": "string", "format": "uint64"},
    FieldDescriptor.TYPE_INT64: {"type": "string", "format": "int64"},
    FieldDescriptor.TYPE_INT32: {"type": "integer", "format": "int32"},
    FieldDescriptor.TYPE_BOOL: {"type": "boolean"},
    FieldDescriptor.TYPE_STRING: {"type": "string"},
    FieldDescriptor.TYPE_BYTES: {"type": "string", "contentEncoding": "base64"},
}
"""The schema of each kind of field, in the JSON of protobuf."""

_PROBLEM = "Problem"
_EXAMPLE = """\
curl --json '{"objects": [{"position": {"lon": 14.51, "lat": 35.89}, "keywords": ["sushi"], \
"ttl_ms": "3600000"}]}' -H "Authorization: Bearer $TOKEN" -H "Idempotency-Key: shop-7" \
http://127.0.0.1:7480/v1/publish
"""


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document."""
    schemas: dict[str, Any] = {_PROBLEM: _problem_schema()}
    paths = {call.path: {call.method.lower(): _operation(call, schemas)} for call in CALLS}
    return {
        "openapi": _VERSION,
        "info": {"title": "nearcast gateway", "version": "v1"},
        "paths": paths,
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer", "bearerFormat": "JWT"}},
        },
        "security": [{"token": []}, {}],
    }


def _operation(call: Call, schemas: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": call.name,
        "summary": call.summary,
        "responses": {
            "200": {
                "description": "The response.",
                "content": {"application/json": {"schema": _schema(call.response.DESCRIPTOR, schemas)}},
            },
            "default": {
                "description": "A refusal.",
                "content": {CONTENT_TYPE: {"schema": _reference(_PROBLEM)}},
            },
        },
    }
    if call.bytes_max:
        schema = _schema(call.request.DESCRIPTOR, schemas)
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    if call is PUBLISH:
        found["parameters"] = [
            {"name": "Idempotency-Key", "in": "header", "schema": {"type": "string", "maxLength": 128}}
        ]
    return found


def _reference(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _schema(message: Descriptor, schemas: dict[str, Any]) -> dict[str, Any]:
    """Return a reference to the schema of a message, which is added with those that it uses."""
    name = message.full_name.removeprefix("nearcast.v1.")
    if name not in schemas:
        schemas[name] = {}  # before its fields: messages may contain themselves
        properties = {field.name: _field(field, schemas) for field in message.fields}
        schemas[name] = {"type": "object", "properties": properties, "additionalProperties": False}
    return _reference(name)


def _field(field: FieldDescriptor, schemas: dict[str, Any]) -> dict[str, Any]:
    message = field.message_type
    if message is not None and message.GetOptions().map_entry:
        return {
            "type": "object",
            "additionalProperties": _field(message.fields_by_name["value"], schemas),
        }
    if message is not None:
        one = _schema(message, schemas)
    elif field.enum_type is not None:
        one = {"type": "string", "enum": [value.name for value in field.enum_type.values]}
    else:
        one = _KINDS[field.type]
    return {"type": "array", "items": one} if field.is_repeated else one


def _problem_schema() -> dict[str, Any]:
    text = {"type": "string"}
    return {
        "type": "object",
        "properties": {
            "type": {"type": "string", "format": "uri-reference"},
            "title": text,
            "status": {"type": "integer"},
            "detail": text,
            "reason": {"type": "string", "enum": [reason.name for reason in CODES]},
            "domain": text,
            "metadata": {
                "type": "object",
                "properties": {"field": text, "value": text, "limit": text},
            },
            "retry_after_ms": {"type": "integer"},
        },
    }


@cache
def page() -> str:
    """Return the page: the calls with their fields, an example, and the reasons of refusals."""
    schemas = document()["components"]["schemas"]
    calls = "".join(_call_section(call) for call in CALLS)
    messages = "".join(_message_section(name, schema) for name, schema in sorted(schemas.items()))
    reasons = "".join(
        f'<tr id="{reason.name}"><td><code>{TYPE}{reason.name}</code></td>'
        f"<td>{STATUSES[code].value}</td></tr>"
        for reason, code in CODES.items()
    )
    return (
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>nearcast gateway</title>'
        "<style>body{font:16px sans-serif;max-width:60em;margin:2em auto;padding:0 1em}"
        "td,th{text-align:left;padding:.2em 1em .2em 0;vertical-align:top}"
        "pre{overflow-x:auto;background:#eee;padding:.5em}</style>"
        "<h1>nearcast gateway</h1><p>Names are those of the protocol; 64-bit numbers are text, bytes are "
        'base64. The same as an OpenAPI document: <a href="/v1/openapi.json">/v1/openapi.json</a>.</p>'
        f"<pre>{escape(_EXAMPLE)}</pre><h2>Calls</h2>{calls}"
        f"<h2>Refusals</h2><p>A refusal is a problem document (<code>{CONTENT_TYPE}</code>).</p>"
        f"<table><tr><th>type</th><th>status</th></tr>{reasons}</table><h2>Messages</h2>{messages}</html>"
    )


def _call_section(call: Call) -> str:
    names = [call.response.DESCRIPTOR.name]
    names[:0] = [call.request.DESCRIPTOR.name] if call.bytes_max else []
    links = " &rarr; ".join(f'<a href="#{name}">{name}</a>' for name in names)
    return f"<h3><code>{call.method} {call.path}</code></h3><p>{escape(call.summary)}</p><p>{links}</p>"


def _message_section(name: str, schema: dict[str, Any]) -> str:
    rows = "".join(
        f"<tr><td><code>{field}</code></td><td>{_kind_text(kind)}</td></tr>"
        for field, kind in schema["properties"].items()
    )
    return f'<h3 id="{name}">{name}</h3><table>{rows}</table>'


def _kind_text(kind: dict[str, Any]) -> str:
    """Return the kind of a field as HTML."""
    if "$ref" in kind:
        name = kind["$ref"].rpartition("/")[2]
        return f'<a href="#{name}">{name}</a>'
    if "items" in kind:
        return f"list of {_kind_text(kind['items'])}"
    if isinstance(kind.get("additionalProperties"), dict):
        return f"map to {_kind_text(kind['additionalProperties'])}"
    if "enum" in kind:
        return "one of " + ", ".join(f"<code>{value}</code>" for value in kind["enum"])
    return str(kind.get("contentEncoding") or kind.get("format") or kind["type"])
