/**
 * Safe regions as outlines, from a subscription as `inspect` shows it.
 *
 * Top-k: the device is silent at p while f(p) + |a p| < reach, with a the anchor and f(p) the k-th
 * smallest length of the objects that it holds. For one object the points are an ellipse with the foci a
 * and the object, whose boundary at the angle theta seen from a is
 *     (l^2 - d^2) / (2 (l - d cos(theta - phi)))   with l = reach - r, d = |a o|, phi its direction.
 * The region needs k objects, so its boundary is the k-th largest of these radii
 * (safe_region/regions/polygon.py).
 */

import { mercatorX, mercatorY } from "./mercator.js";

const VERTICES = 144;
/** A region beyond this distance is not drawn: it ends outside every view. */
const FAR_M = 200_000;

/**
 * @typedef {object} Plane the plane of the server, by its frame
 * @property {number} lon0_deg
 * @property {number} lat0_deg
 * @property {number} x_m_per_deg
 * @property {number} y_m_per_deg
 * @property {number} maxdist_m the default unit of distance in scores
 */

/** @typedef {{x_m: number, y_m: number}} Point */
/** @typedef {{x_m: number, y_m: number, r_m: number}} Held */

/**
 * Return the outline of a top-k region on the plane; null if it has no end.
 * @param {Point} anchor
 * @param {Held[]} held
 * @param {number} k
 * @param {number} reachM
 * @returns {Point[] | null}
 */
export function anchoredOutline(anchor, held, k, reachM) {
    if (!Number.isFinite(reachM)) return null;
    if (held.length < k) return [];
    const radii = new Float64Array(held.length);
    return turn((theta) => {
        held.forEach((one, i) => (radii[i] = radius(anchor, one, reachM, theta)));
        radii.sort();
        return Math.min(radii[held.length - k], FAR_M);
    }, anchor);
}

/**
 * Return how far a device may move in every direction without a report: half of the
 * difference between the k-th length and the reach. Infinite if the region has no end.
 * @param {number[]} lengthsM of the objects that it holds, shortest first
 * @param {number} k
 * @param {number} reachM
 */
export function marginM(lengthsM, k, reachM) {
    if (!Number.isFinite(reachM)) return Infinity;
    return lengthsM.length < k ? 0 : Math.max(0, (reachM - lengthsM[k - 1]) / 2);
}

/** Return the distance between two points. @param {Point} left @param {Point} right */
export function metres(left, right) {
    return Math.hypot(left.x_m - right.x_m, left.y_m - right.y_m);
}

/** @param {Point} anchor @param {Held} one @param {number} reachM @param {number} theta */
function radius(anchor, one, reachM, theta) {
    const [dx, dy] = [one.x_m - anchor.x_m, one.y_m - anchor.y_m];
    const distance = Math.hypot(dx, dy);
    const major = reachM - one.r_m;
    if (major <= distance) return 0;
    const along = Math.cos(theta - Math.atan2(dy, dx));
    return (major * major - distance * distance) / (2 * (major - distance * along));
}

/** @param {Point} middle @param {number} radiusM @returns {Point[]} */
export function circle(middle, radiusM) {
    return turn(() => radiusM, middle);
}

/** @param {Point} middle @param {number} halfX @param {number} halfY @returns {Point[]} */
export function rectangle({ x_m, y_m }, halfX, halfY) {
    return [[-1, -1], [1, -1], [1, 1], [-1, 1]].map(([x, y]) => ({ x_m: x_m + x * halfX, y_m: y_m + y * halfY }));
}

/** @param {(theta: number) => number} radiusAt @param {Point} middle @returns {Point[]} */
function turn(radiusAt, { x_m, y_m }) {
    return Array.from({ length: VERTICES }, (_, i) => {
        const theta = (2 * Math.PI * i) / VERTICES;
        const distance = radiusAt(theta);
        return { x_m: x_m + distance * Math.cos(theta), y_m: y_m + distance * Math.sin(theta) };
    });
}

/** Return points of the plane as an outline of the map. @param {Point[]} points @param {Plane} plane */
export function outlineOf(points, plane) {
    const outline = new Float64Array(points.length * 2);
    points.forEach(({ x_m, y_m }, i) => {
        outline[2 * i] = mercatorX(plane.lon0_deg + x_m / plane.x_m_per_deg);
        outline[2 * i + 1] = mercatorY(plane.lat0_deg + y_m / plane.y_m_per_deg);
    });
    return outline;
}

/** @param {{lon: number, lat: number}} position @param {Plane} plane @returns {Point} */
export function project({ lon, lat }, plane) {
    return {
        x_m: (lon - plane.lon0_deg) * plane.x_m_per_deg,
        y_m: (lat - plane.lat0_deg) * plane.y_m_per_deg,
    };
}
