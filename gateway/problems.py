"""Refusals as problem documents (RFC 9457)."""

from __future__ import annotations

import json
import math
from http import HTTPStatus
from typing import Any

from aiohttp import web

from nearcast.errors import Reason, RefusedError
from nearcast.v1 import errors_pb2
from nearcast.wire.errors import error_message

CONTENT_TYPE = "application/problem+json"
DOMAIN = "nearcast"
TYPE = "/v1/docs#"
"""A problem's type, before its reason: the gateway's own page explains each."""

STATUSES = {
    3: HTTPStatus.BAD_REQUEST,
    4: HTTPStatus.GATEWAY_TIMEOUT,
    5: HTTPStatus.NOT_FOUND,
    6: HTTPStatus.CONFLICT,
    7: HTTPStatus.FORBIDDEN,
    8: HTTPStatus.TOO_MANY_REQUESTS,
    9: HTTPStatus.BAD_REQUEST,
    10: HTTPStatus.CONFLICT,
    11: HTTPStatus.BAD_REQUEST,
    12: HTTPStatus.NOT_IMPLEMENTED,
    13: HTTPStatus.INTERNAL_SERVER_ERROR,
    14: HTTPStatus.SERVICE_UNAVAILABLE,
    16: HTTPStatus.UNAUTHORIZED,
}
"""The HTTP status of each `google.rpc.Code`."""

_ELSEWHERE = error_message(
    RefusedError(
        Reason.RECOVERING,
        "device",
        "served by another server",
        "served by one that this gateway can call; try again",
        retry_after_ms=1_000,
    )
)
"""What clients get instead of a refusal that has the address of a server."""

_PREFIX = "ERROR_REASON_"
_MS_PER_S = 1000.0


def problem(error: errors_pb2.Error) -> web.Response:
    """Return the response for a refusal: the members of `google.rpc.ErrorInfo`, and of RFC 9457.

    It has no address of a server.
    """
    if error.server or error.reason == errors_pb2.ERROR_REASON_ANOTHER_SERVER:
        error = _ELSEWHERE
    name = errors_pb2.ErrorReason.Name(error.reason).removeprefix(_PREFIX)
    status = STATUSES.get(error.code, HTTPStatus.BAD_GATEWAY)
    headers = {}
    content: dict[str, Any] = {
        "type": f"{TYPE}{name}",
        "title": name.replace("_", " ").capitalize(),
        "status": status.value,
        "detail": error.message,
        "reason": name,
        "domain": DOMAIN,
        "metadata": {"field": error.field, "value": error.value, "limit": error.limit},
    }
    if error.retry_after_ms:
        content["retry_after_ms"] = error.retry_after_ms
        headers["Retry-After"] = str(math.ceil(error.retry_after_ms / _MS_PER_S))
    if status is HTTPStatus.UNAUTHORIZED:
        headers["WWW-Authenticate"] = "Bearer"
    return _response(content, status, headers)


def plain_problem(status: HTTPStatus, detail: str) -> web.Response:
    """Return the response for an HTTP status that is no refusal of nearcast."""
    content = {"type": "about:blank", "title": status.phrase, "status": status.value, "detail": detail}
    return _response(content, status, {})


def _response(content: dict[str, Any], status: HTTPStatus, headers: dict[str, str]) -> web.Response:
    return web.Response(
        status=status.value, text=json.dumps(content) + "\n", content_type=CONTENT_TYPE, headers=headers
    )
