"""Prefetching memory before it is read, so that accesses to many places overlap.

A processor reads ahead until it has mispredicted the end of a loop; short runs of entries end all the
time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy.typing as npt
from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic, overload

_READ, _KEPT, _DATA = 0, 3, 1
"""Arguments of LLVM's prefetch."""


def prefetch(array: npt.NDArray[Any], place: int) -> None:
    """Prefetch `array[place]`, which need not exist. As plain Python it does nothing."""


def _typed(typing_context: Any, array: Any, place: Any) -> Any:  # noqa: ANN401, ARG001 - numba's own
    """Return the signature and the code generator for an array and a place."""

    def compiled(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:  # noqa: ANN401
        found = context.make_array(signature.args[0])(context, builder, arguments[0])
        bytes_type = ir.IntType(8).as_pointer()
        start = builder.bitcast(found.data, bytes_type)
        width = ir.Constant(ir.IntType(64), signature.args[0].dtype.bitwidth // 8)
        offset = builder.mul(context.cast(builder, arguments[1], signature.args[1], types.int64), width)
        number = ir.IntType(32)
        called = ir.FunctionType(ir.VoidType(), [bytes_type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [bytes_type], called)
        flags = [ir.Constant(number, value) for value in (_READ, _KEPT, _DATA)]
        builder.call(function, [builder.gep(start, [offset]), *flags])
        return context.get_dummy_value()

    return types.void(array, place), compiled


_prefetch: Any = intrinsic(_typed)


@overload(prefetch)
def _compiled(array: Any, place: Any) -> Callable[..., None]:  # noqa: ANN401, ARG001
    """Return the implementation of `prefetch` in compiled functions."""

    def called(array: Any, place: Any) -> None:  # noqa: ANN401
        _prefetch(array, place)

    return called
