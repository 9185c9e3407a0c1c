/**
 * The exact orientation of three points.
 *
 * Every double is an integer times a power of two, so there is a grid of integers that holds all
 * coordinates. Sums and products on it are exact, as BigInt.
 */

export type Vertex = readonly [xM: number, yM: number];

/**
 * A fraction of the sum of the two products' magnitudes. If their difference is larger, its sign is
 * correct. The true bound is 3.4e-16, about three roundings.
 */
const TURN_ERROR = 4e-16;

/** Return a number with the sign of the exact orientation: above 0 if c lies left of a to b. */
export function turn(a: Vertex, b: Vertex, c: Vertex): number {
    const left = (a[0] - c[0]) * (b[1] - c[1]);
    const right = (a[1] - c[1]) * (b[0] - c[0]);
    const difference = left - right;
    if (Math.abs(difference) > TURN_ERROR * (Math.abs(left) + Math.abs(right))) return difference;
    return orientation(a, b, c);
}

/** Return 1 if c lies left of the line from a to b, -1 if right, 0 if on it; exactly. */
export function orientation(a: Vertex, b: Vertex, c: Vertex): number {
    const parts = [...a, ...b, ...c].map(integerAndExponent);
    const least = Math.min(...parts.map(({ exponent }) => exponent));
    const [ax, ay, bx, by, cx, cy] = parts.map(
        ({ integer, exponent }) => integer << BigInt(exponent - least),
    ) as [bigint, bigint, bigint, bigint, bigint, bigint];
    const found = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax);
    return found > 0n ? 1 : found < 0n ? -1 : 0;
}

const VIEW = new DataView(new ArrayBuffer(8));
const FRACTION_BITS = 52n;
const EXPONENT_BIAS = 1075;

/** Return a double as an integer times a power of two. */
function integerAndExponent(value: number): { integer: bigint; exponent: number } {
    VIEW.setFloat64(0, value);
    const bits = VIEW.getBigUint64(0);
    const biased = Number((bits >> FRACTION_BITS) & 0x7ffn);
    const fraction = bits & ((1n << FRACTION_BITS) - 1n);
    const magnitude = biased === 0 ? fraction : fraction | (1n << FRACTION_BITS);
    return { integer: value < 0 ? -magnitude : magnitude, exponent: Math.max(biased, 1) - EXPONENT_BIAS };
}
