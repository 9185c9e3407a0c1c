"""The gateway: frames of devices, and requests over HTTP with JSON."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from types import SimpleNamespace

from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from multidict import CIMultiDict

from gateway import frames
from gateway.calls import CALLS, elements_of
from gateway.handshake import header_token, require_handshake, require_plain_address
from gateway.http_api import parsed
from gateway.problems import problem
from nearcast.errors import Reason, RefusedError
from nearcast.v1 import device_service_pb2
from nearcast.wire.errors import error_message
from server.limits import Limits
from server.transport.wire_walk import MessageTypes
from tests.fuzz.target import Target
