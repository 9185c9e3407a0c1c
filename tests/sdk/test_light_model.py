"""Limits, checks and models can be used without gRPC, messages and array libraries."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields

import pytest

import nearcast
from nearcast import errors, limits
from nearcast.errors import RefusedError
from server.limits import Limits

PLAIN = ("limits", "checks", "spec_checks", "canonical", "model", "errors")


@pytest.mark.processes
def test_a_program_that_imports_them_loads_no_wire_type():
    program = f"""
import sys
from nearcast import {", ".join(PLAIN)}
import nearcast
print(sorted({{name.split(".")[0] for name in sys.modules}} & {{"grpc", "google", "numpy", "numba"}}))
assert nearcast.connect.__module__ == "nearcast.client"
print("grpc" in sys.modules)
"""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout.split("\n")[:2] == ["[]", "True"]


def test_every_public_name_is_there():
    assert all(getattr(nearcast, name) is not None for name in nearcast.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        nearcast.nothing  # noqa: B018


def test_the_server_has_the_limits_of_all_rooms():
    assert issubclass(Limits, limits.Limits)
    shared = {field.name for field in fields(limits.Limits)}
    ours, theirs = Limits(), limits.DEFAULT_LIMITS
    assert {name: getattr(ours, name) for name in shared} == {
        name: getattr(theirs, name) for name in shared
    }


def test_a_refusal_is_one_exception_and_shortens_its_value():
    assert RefusedError is errors.RefusedError
    long = errors.invalid("field", "x" * 500, "short")
    assert long.value == "'" + "x" * 76 + "..."
