"""Warnings of environment variables that look like settings but are not, such as misspelt names."""

from __future__ import annotations

import difflib
import logging
import os
import re

from cli.options import facts_of, gateway_settings, server_settings

_log = logging.getLogger(__name__)

_PREFIX = "NEARCAST_"
_OTHERS = frozenset(
    {
        "NEARCAST_SERVER",
        "NEARCAST_TOKEN",
        "NEARCAST_TOKEN_FILE",
        "NEARCAST_TLS",
        "NEARCAST_TLS_ROOT",
        "NEARCAST_TLS_ROOTS",
        "NEARCAST_TLS_SERVER_NAME",
        "NEARCAST_REDIS_USER",
        "NEARCAST_REDIS_PASSWORD",
        "NEARCAST_DATA",
        "NEARCAST_TEST_TIMES",
        "NEARCAST_TEST_SEED",
    }
)
"""Variables of clients, feeds and tests."""

_OF_KUBERNETES = re.compile(r"NEARCAST_(GATEWAY_)?(SERVICE_(HOST|PORT(_.*)?)|PORT_\d+_.*)")
"""Variables that Kubernetes sets in containers beside a service named nearcast or nearcast-gateway."""


def warn_of_unknown_variables() -> None:
    """Log a warning for each unknown variable that looks like a setting, without its value."""
    models = (server_settings(), gateway_settings())
    known = {facts.variable for model in models for facts in facts_of(model).values()}
    for name in sorted(os.environ):
        variable = name.upper()
        if not variable.startswith(_PREFIX) or variable in known | _OTHERS:
            continue
        if _OF_KUBERNETES.fullmatch(variable):
            continue
        close = difflib.get_close_matches(variable, known, 1)
        guess = f": did you mean {close[0]}?" if close else ""
        _log.warning("the variable %s is not a setting and has no effect%s", ascii(name)[1:-1], guess)
