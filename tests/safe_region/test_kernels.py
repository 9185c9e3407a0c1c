"""Kernels round like plain Python, and devices need none of them."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from safe_region.jit import kernel
from safe_region.jit.cache import kernel_sources
from safe_region.scoring import formulas, kernels
from safe_region.scoring.keywords import normalised_keyword

PARAMETERS_MAX = 12


def test_compiled_scoring_is_plain_scoring_to_the_bit():
    for similarity in formulas.Similarity:
        for left in range(1, 17):
            for right in range(1, 65):
                for common in range(1, min(left, right) + 1):
                    arguments = (int(similarity), common, left, right)
                    assert kernels.text_distance(*arguments) == formulas.text_distance(*arguments)
    random = np.random.default_rng(1)
    for dx, dy, r in random.normal(0.0, 1e5, (2_000, 3)):
        assert kernels.length(dx, dy, abs(r)) == formulas.length(dx, dy, abs(r))


def test_common_count():
    random = np.random.default_rng(2)
    for _ in range(300):
        left = np.unique(random.integers(0, 12, random.integers(0, 8))).astype(np.int32)
        right = np.unique(random.integers(0, 12, random.integers(0, 8))).astype(np.int32)
        assert kernels.common_count(left, right) == len(set(left) & set(right))


def test_the_cache_is_keyed_on_every_kernel():
    names = {path.name for path in kernel_sources()}
    assert {"formulas.py", "selection_kernels.py", "kernels.py"} <= names
    assert {"compiling.py", "decorators.py", "dispatchers.py"} <= names


def imported(path):
    """What a file of this project takes from others of it: module and name of each."""
    root = Path(__file__).resolve().parents[2]
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (root / str(node.module).split(".")[0]).is_dir():
            yield from ((node.module, alias.name) for alias in node.names)


def test_the_cache_is_keyed_on_every_file_that_kernels_have_constants_from():
    sources = {path.resolve() for path in kernel_sources()}
    found = set()
    for path in sources:
        for module, name in imported(path):
            home = importlib.import_module(module)
            value = getattr(home, name)
            if isinstance(value, ModuleType):
                home = value
            elif not isinstance(value, int | float | tuple | np.generic | np.ndarray):
                continue
            found.add(name)
            assert Path(home.__file__).resolve() in sources, f"{path.name} has {name} from elsewhere"
    assert {"REACH_SLACK", "formulas", "NO_HOLDING"} <= found


WIDE = {
    # Arrays in a tuple take longer to pass, and one object is matched in a few microseconds.
    ("inverted_grid", "match"),
}


def wide_kernels(path):
    """The functions of a file with more parameters than a kernel may have."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.FunctionDef):
            arguments = node.args
            count = len(arguments.posonlyargs + arguments.args + arguments.kwonlyargs)
            if count > PARAMETERS_MAX:
                yield path.parent.name, node.name


def test_kernels_have_few_parameters():
    found = {wide for path in kernel_sources() for wide in wide_kernels(path)}
    assert found == WIDE


@pytest.mark.processes
@pytest.mark.parametrize(
    "module",
    ["nearcast", "safe_region.oracle", "safe_region.regions.anchored", "safe_region.geometry.shapes"],
)
def test_devices_need_neither_arrays_nor_kernels(module):
    heavy = {"numpy", "numba", "shapely", "click"}
    code = f"import sys, {module}; sys.exit(bool({heavy} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("given", "normal"),
    [
        ("Sushi ", "sushi"),
        ("STRASSE", "strasse"),
        ("Straße", "strasse"),
        ("cafe\u0301", "café"),
        ("\uff33\uff35\uff33\uff28\uff29", "sushi"),
        ("\ufb01sh", "fish"),
        ("\u3000tea\t", "tea"),
    ],
)
def test_keywords_have_one_normal_form(given, normal):
    assert normalised_keyword(given) == normal
    assert normalised_keyword(normal) == normal


def test_a_kernel_with_an_unwritable_cache_is_compiled_all_the_same():
    def twice(number):
        return 2 * number

    def full(*_):
        raise OSError("no space left on device")

    compiled = kernel(twice)
    if hasattr(compiled, "_cache"):
        compiled._cache._save_overload = full  # noqa: SLF001 - numba has no other way in
    assert compiled(21) == 42
