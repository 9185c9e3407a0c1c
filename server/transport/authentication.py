"""Authentication: every call is authenticated here, before any message of it is read, and only here.

The interceptor checks the metadata with which a call starts. A caller that is refused gets a status at
once, so the call of a stranger costs the server little: no message is read, no task is left. Handlers get
the authenticated caller from `principal`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextvars import ContextVar
from typing import Any

import grpc
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from identity.authenticator import Authenticator
from identity.bearer import HEADER, bearer_token
from identity.principal import Principal
from identity.rules import Action, require_action
from nearcast.errors import Reason, RefusedError
from nearcast.v1 import control_service_pb2, device_service_pb2, publisher_service_pb2
from server.transport.admission import Admission, Context


def _methods(descriptor: Any, service: str, actions: dict[str, Action]) -> dict[str, Action]:  # noqa: ANN401
    """Return the action of each method of a service, by the name that calls have."""
    found = descriptor.services_by_name[service]
    return {f"/{found.full_name}/{name}": action for name, action in actions.items()}


ACTIONS: dict[str, Action] = {
    **_methods(
        device_service_pb2.DESCRIPTOR,
        "DeviceService",
        {
            "Attach": Action.ATTACH,
            "AttachFleet": Action.ATTACH,
            "Search": Action.SEARCH,
            "ForgetDevice": Action.FORGET,
        },
    ),
    **_methods(
        publisher_service_pb2.DESCRIPTOR,
        "PublisherService",
        {"Publish": Action.PUBLISH, "Retract": Action.RETRACT},
    ),
    **_methods(
        control_service_pb2.DESCRIPTOR,
        "ControlService",
        {
            "Sync": Action.SYNC,
            "AdvanceClock": Action.ADVANCE_CLOCK,
            "SetIdf": Action.SET_IDF,
            "Status": Action.STATUS,
            "Inspect": Action.INSPECT,
            "Watch": Action.WATCH,
        },
    ),
    **_methods(reflection_pb2.DESCRIPTOR, "ServerReflection", {"ServerReflectionInfo": Action.REFLECT}),
    **_methods(health_pb2.DESCRIPTOR, "Health", {"Watch": Action.REFLECT}),
    "/cluster.v1.SnapshotService/Copy": Action.COPY,  # of nodes of a cluster only
}
"""The action of each method. A method that is not here is refused, unless it is open."""

OPEN = frozenset(_methods(health_pb2.DESCRIPTOR, "Health", {"Check": Action.REFLECT}))
"""Methods that need no token, since load balancers have none."""

SERVICES = tuple(
    descriptor.services_by_name[name].full_name
    for descriptor, name in (
        (device_service_pb2.DESCRIPTOR, "DeviceService"),
        (publisher_service_pb2.DESCRIPTOR, "PublisherService"),
        (control_service_pb2.DESCRIPTOR, "ControlService"),
    )
)
"""Services that handle callers themselves; all others are from libraries."""

_HELD_S = 0.25
_HELD_MAX = 1_000
"""How long calls of callers over their rate are held, and the maximum number held at once."""

_principal: ContextVar[Principal] = ContextVar("principal")


def principal() -> Principal:
    """Return the caller of the present call."""
    return _principal.get()


class AuthenticationInterceptor(grpc.aio.ServerInterceptor):
    """Authenticates calls. It precedes the code that reads messages.

    Parameters
    ----------
    authenticator
        Verifies tokens.
    admission
        Refuses and counts.
    """

    def __init__(self, authenticator: Authenticator, admission: Admission) -> None:
        self._authenticator = authenticator
        self._admission = admission
        self._held_count = 0

    async def intercept_service(
        self,
        continuation: Callable[[grpc.HandlerCallDetails], Awaitable[Any]],
        handler_call_details: grpc.HandlerCallDetails,
    ) -> Any:  # noqa: ANN401 - gRPC has no type for it
        """Return the handler of a call, or one that refuses it."""
        handler = await continuation(handler_call_details)
        method = handler_call_details.method
        if handler is None or method in OPEN:
            return handler
        try:
            found = self._admit(method, handler_call_details.invocation_metadata)
            await found.account.pace()
            _principal.set(found)
        except RefusedError as error:
            return self._refusing(error)
        return handler

    def _admit(self, method: str, metadata: Iterable[tuple[str, str | bytes]] | None) -> Principal:
        action = ACTIONS.get(method)
        if action is None:
            limit = "a method with an access rule"
            raise RefusedError(Reason.PERMISSION_DENIED, "method", method, limit)
        found = self._authenticator.principal(token_of(metadata))
        require_action(found, action)
        found.account.require(1)
        return found

    def _refusing(self, error: RefusedError) -> Any:  # noqa: ANN401
        async def refuse(_requests: object, context: Context) -> None:
            if error.retry_after_ms and self._held_count < _HELD_MAX:
                await self._hold()
            self._admission.refuse(context, error)

        # Of this kind for every method: a handler of single requests would wait for the request.
        return grpc.stream_stream_rpc_method_handler(refuse)

    async def _hold(self) -> None:
        """Delay a caller over its rate, so that one that ignores the hints is slowed down."""
        self._held_count += 1
        try:
            await asyncio.sleep(_HELD_S)
        finally:
            self._held_count -= 1


def token_of(metadata: Iterable[tuple[str, str | bytes]] | None) -> str | None:
    """Return the token in the metadata of a call; None if there is none.

    Raises
    ------
    RefusedError
        UNAUTHENTICATED, if there are several, or it is no bearer token.
    """
    return bearer_token([str(value) for key, value in metadata or () if key.lower() == HEADER])
