"""Decide exactly on which side of a line a point lies: a float64 filter, and expansions in close cases.

An expansion is a sum of float64 that is not rounded. Its components do not overlap and the least comes
first, so the last component that is not zero has the sign of the sum. Contraction or reassociation would
break this code: kernels are compiled without fastmath, and LLVM then does neither.

Cost: some 10 operations where the filter decides, some 500 where it does not.
Source: J. R. Shewchuk, "Adaptive Precision Floating-Point Arithmetic and Fast Robust Geometric
Predicates" (1997): two-sum, Dekker's product, expansion sums (theorem 12), the bound of `orient2d`.
"""

from __future__ import annotations

from safe_region.jit import leaf

Expansion = tuple[float, ...]

_FILTER_ERROR = (3.0 + 16.0 * 2.0**-53) * 2.0**-53
"""Error of the filter, relative to the sum of its two products: Shewchuk's `ccwerrboundA`."""

_UNDERFLOW_ERROR = 1e-300
"""More than the loss of the two products to underflow."""

_SCALE = 2.0**450
"""Exact products need their last bits to be no smaller than 2**-1074, and their first below 2**1024. This
factor ensures it for coordinates that are 0 or between 1e-280 and 1e17."""

_SPLITTER = 2.0**27 + 1.0


@leaf
def orientation(ax_m: float, ay_m: float, bx_m: float, by_m: float, cx_m: float, cy_m: float) -> int:
    """Return 1 if c lies left of the line from a to b, -1 if right of it, 0 if on it; exact.

    Parameters
    ----------
    ax_m, ay_m, bx_m, by_m, cx_m, cy_m
        Three points; each coordinate is 0, or its magnitude is between 1e-280 and 1e17. With a = b the
        result is 0.
    """
    acx = ax_m - cx_m
    acy = ay_m - cy_m
    bcx = bx_m - cx_m
    bcy = by_m - cy_m
    # A difference is 0 only between equal numbers, so this is exact, too.
    if (acx == 0.0 or bcy == 0.0) and (acy == 0.0 or bcx == 0.0):
        return 0
    left = acx * bcy
    right = acy * bcx
    difference = left - right
    error = _FILTER_ERROR * (abs(left) + abs(right)) + _UNDERFLOW_ERROR
    if difference > error:
        return 1
    if -difference > error:
        return -1
    return _exact_orientation(
        ax_m * _SCALE, ay_m * _SCALE, bx_m * _SCALE, by_m * _SCALE, cx_m * _SCALE, cy_m * _SCALE
    )


@leaf
def _exact_orientation(ax: float, ay: float, bx: float, by: float, cx: float, cy: float) -> int:
    """Return the sign of (a x b) + (b x c) + (c x a)."""
    terms = _sum_8_4(_sum_4_4(_cross(ax, ay, bx, by), _cross(bx, by, cx, cy)), _cross(cx, cy, ax, ay))
    sign = 0
    for term in terms:
        if term > 0.0:
            sign = 1
        elif term < 0.0:
            sign = -1
    return sign


@leaf
def _cross(ax: float, ay: float, bx: float, by: float) -> Expansion:
    """Return ax * by - ay * bx, as 4 components."""
    return _sum_2_2(_two_product(ax, by), _two_product(-ay, bx))


@leaf
def _two_product(a: float, b: float) -> Expansion:
    """Return a * b as 2 components: the rounding error, and the rounded product."""
    product = a * b
    c = _SPLITTER * a
    a_high = c - (c - a)
    a_low = a - a_high
    c = _SPLITTER * b
    b_high = c - (c - b)
    b_low = b - b_high
    lost = a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)
    return lost, product


@leaf
def _two_sum(a: float, b: float) -> Expansion:
    """Return a + b as 2 components: the rounding error, and the rounded sum."""
    total = a + b
    b_virtual = total - a
    a_virtual = total - b_virtual
    return (a - a_virtual) + (b - b_virtual), total


@leaf
def _grow_2(e: Expansion, b: float) -> Expansion:
    """Add a number to 2 components; return 3."""
    first = _two_sum(e[0], b)
    second = _two_sum(e[1], first[1])
    return first[0], second[0], second[1]


@leaf
def _grow_4(e: Expansion, b: float) -> Expansion:
    """Add a number to 4 components; return 5."""
    low = _grow_2(e[:2], b)
    return low[:2] + _grow_2(e[2:], low[2])


@leaf
def _grow_8(e: Expansion, b: float) -> Expansion:
    """Add a number to 8 components; return 9."""
    low = _grow_4(e[:4], b)
    return low[:4] + _grow_4(e[4:], low[4])


@leaf
def _sum_2_2(e: Expansion, f: Expansion) -> Expansion:
    """Add 2 components to 2; return 4."""
    first = _grow_2(e, f[0])
    return first[:1] + _grow_2(first[1:], f[1])


@leaf
def _sum_4_4(e: Expansion, f: Expansion) -> Expansion:
    """Add 4 components to 4; return 8."""
    first = _grow_4(e, f[0])
    second = _grow_4(first[1:], f[1])
    third = _grow_4(second[1:], f[2])
    return first[:1] + second[:1] + third[:1] + _grow_4(third[1:], f[3])


@leaf
def _sum_8_4(e: Expansion, f: Expansion) -> Expansion:
    """Add 4 components to 8; return 12."""
    first = _grow_8(e, f[0])
    second = _grow_8(first[1:], f[1])
    third = _grow_8(second[1:], f[2])
    return first[:1] + second[:1] + third[:1] + _grow_8(third[1:], f[3])
