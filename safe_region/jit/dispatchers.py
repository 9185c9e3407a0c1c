"""Define kernels and leaves as numba dispatchers, which hold a function's compiled code by types.

A leaf is compiled once for all widths of numbers: an `int` or a `float` of Python is passed as int64 or
float64. numba compiles a function separately for constants, and for each type that it assumes for a
variable until it has seen the whole loop. A quarter of all compilations were for types that turned out to
be int64.
"""

from __future__ import annotations

import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from numba.core.errors import NumbaExperimentalFeatureWarning
from numba.core.registry import CPUDispatcher
from numba.core.runtime import rtsys
from numba.core.types import Float, Integer, float64, int64
from numba.core.types.misc import unliteral

from safe_region.jit.compiling import KernelCompiler, LeafCompiler

# A record that starts with the fields of another, followed by more, may be passed in its place.
warnings.filterwarnings("ignore", category=NumbaExperimentalFeatureWarning)

_Function = Callable[..., Any]

_OPTIONS = {"nopython": True, "boundscheck": None, "nogil": True}


class Missing(NamedTuple):
    """A kernel that is not in the cache for some types of arguments."""

    module: str
    name: str
    signature: tuple[Any, ...]


class _Mode:
    """The handling of kernels that are not in the cache: they are compiled, or recorded here."""

    missing: dict[Missing, None] | None = None


@contextlib.contextmanager
def noted() -> Iterator[dict[Missing, None]]:
    """Let kernels that are not in the cache run as plain Python, once, and record them.

    For one thread.
    """
    _Mode.missing = {}
    try:
        yield _Mode.missing
    finally:
        _Mode.missing = None


class _NotCachedError(Exception):
    """A kernel is to be recorded."""

    def __init__(self, missing: dict[Missing, None]) -> None:
        super().__init__()
        self.missing = missing


class Kernel(CPUDispatcher):
    """A function that Python calls."""

    compiled_count = 0
    """The number compiled in this process, for some types of arguments, and not loaded."""

    def __init__(self, py_func: _Function) -> None:
        super().__init__(py_func, targetoptions=dict(_OPTIONS), pipeline_class=KernelCompiler)
        self.is_kept = True
        """Whether all code compiled here is in the cache now."""
        self._has_looked = False
        self._compiler.compile = _unless_noted(self._compiler.compile)

    def compile(self, sig: tuple[Any, ...]) -> _Function:
        """Load the code compiled for some types of arguments, or compile it."""
        if not self._has_looked:
            self._has_looked = True
            self._look_for_cache()
        found: _Function = super().compile(sig)
        return found

    def _look_for_cache(self) -> None:
        """Use the cache, if there is a folder for it.

        Most kernels are never called, and need no cache.
        """
        try:
            self.enable_caching()
        except RuntimeError:  # no folder is writable
            self.is_kept = False
        else:
            self._cache.save_overload = self._unless_full(self._cache.save_overload)
            self._cache.load_overload = functools.partial(_loaded, self._cache)

    def _compile_for_args(self, *arguments: object, **named: object) -> Any:  # noqa: ANN401
        """Return the function to call with arguments for which no code is loaded yet."""
        try:
            return super()._compile_for_args(*arguments, **named)
        except _NotCachedError as error:
            signature = tuple(self.typeof_pyval(argument) for argument in arguments)
            error.missing[Missing(self.__module__, self.__name__, signature)] = None
            return self.py_func

    def _unless_full(self, save: Callable[..., None]) -> Callable[..., None]:
        """Continue without the cache where it is not writable: a full disk must not end a server."""

        def save_if_possible(*arguments: object) -> None:
            try:
                save(*arguments)
            except OSError:
                self.is_kept = False

        return save_if_possible


class Leaf:
    """A function that only kernels call compiled. Called from Python, as by checks, it is plain Python.

    Its dispatchers are created at the first compilation: there are hundreds of leaves, and most starts of
    a server compile nothing.

    Parameters
    ----------
    py_func
        The function to compile.
    counts
        Whether references to arrays are counted.
    """

    def __init__(self, py_func: _Function, *, counts: bool = False) -> None:
        functools.update_wrapper(self, py_func)
        self.py_func = py_func
        self._options = {**_OPTIONS, "_nrt": counts}

    def __call__(self, *arguments: object, **named: object) -> Any:  # noqa: ANN401, D102
        return self.py_func(*arguments, **named)

    @property
    def _numba_type_(self) -> Any:  # noqa: ANN401
        """The attribute that numba reads from every object that a kernel calls."""
        return self._called._numba_type_

    @functools.cached_property
    def _called(self) -> CPUDispatcher:
        return _CalledLeaf(self.py_func, targetoptions=self._options, pipeline_class=LeafCompiler)

    @functools.cached_property
    def compiled(self) -> CPUDispatcher:
        """The function compiled by itself, for tests of it."""
        return CPUDispatcher(self.py_func, targetoptions=self._options)


class _CalledLeaf(CPUDispatcher):
    def get_call_template(self, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:  # noqa: ANN401
        """Return the type of a call with such types, which compiles the function for them."""
        return super().get_call_template(tuple(map(_widened, args)), kws)


def _loaded(cache: Any, signature: tuple[Any, ...], target_context: Any) -> Any:  # noqa: ANN401
    """Return compiled code from the cache; None if it is not there.

    numba's own function prepares the compiler first, even if nothing is to be compiled: a third of
    the time of loading all kernels of a server.
    """
    rtsys.initialize(target_context)  # what compiled code calls
    with cache._guard_against_spurious_io_errors():  # noqa: SLF001 - as numba does
        return cache._load_overload(signature, target_context)  # noqa: SLF001


def _widened(numba_type: Any) -> Any:  # noqa: ANN401
    """Return the type as which a leaf receives an argument."""
    found = unliteral(numba_type)
    if isinstance(found, Integer):
        return int64
    return float64 if isinstance(found, Float) else found


def _unless_noted(compiled: Callable[..., Any]) -> Callable[..., Any]:
    """Compile nothing while kernels are recorded. numba calls this after a miss in the cache."""

    def compiled_unless_noted(*arguments: object) -> Any:  # noqa: ANN401
        if _Mode.missing is not None:
            raise _NotCachedError(_Mode.missing)
        Kernel.compiled_count += 1
        return compiled(*arguments)

    return compiled_unless_noted
