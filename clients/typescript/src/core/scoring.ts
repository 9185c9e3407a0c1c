/** Lengths and scores. See `safe_region/scoring/formulas.py`. */

/** Relative safety margin of every test of a length against a reach. */
export const REACH_SLACK = 1e-12;

/**
 * Return the length of an object at offset (dx, dy) with the constant part r, all in metres.
 *
 * This one expression is used everywhere, so that devices and servers round alike: no `Math.hypot`.
 */
export function length(dxM: number, dyM: number, constantM: number): number {
    return Math.sqrt(dxM * dxM + dyM * dyM) + constantM;
}

/** Return the score that belongs to a length, for display. */
export function scoreOf(lengthM: number, alpha: number, scaleM: number): number {
    return (lengthM * alpha) / scaleM;
}

/** Length in metres and id of an object in a result. */
export type Ranked = readonly [lengthM: number, objectId: bigint];

/** Order by length; of equal lengths the smaller id comes first. */
export function byRank(one: Ranked, other: Ranked): number {
    if (one[0] !== other[0]) return one[0] < other[0] ? -1 : 1;
    return one[1] < other[1] ? -1 : one[1] > other[1] ? 1 : 0;
}
