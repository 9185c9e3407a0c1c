/** The state of a chosen device on the server, read with `inspect`, as shapes and rows to draw. */

import { call } from "./calls.js";
import { mercatorX, mercatorY } from "./mercator.js";
import { anchoredOutline, circle, marginM, outlineOf, project, rectangle } from "./region.js";

/** @typedef {import("./region.js").Plane} Plane */
/** @typedef {import("./region.js").Point} Point */
/** @typedef {import("./scene.js").Scene} Scene */

/**
 * An object of a subscription, or the first one that the device does not have.
 * @typedef {object} Row
 * @property {string} id
 * @property {string} name its key, or its number
 * @property {string[]} keywords
 * @property {"result" | "buffer" | "next"} kind
 * @property {number} rank
 * @property {number} lengthM
 * @property {number} textM part of the length that is text
 * @property {number} score
 * @property {{lon: number, lat: number} | null} position
 */

/**
 * A device and one of its subscriptions. Lengths are those at the anchor; in recorded runs, where the true
 * position of the device is known, those at this position.
 * @typedef {object} Inspection
 * @property {any} device
 * @property {any} subscription the chosen one, with held objects; null if the device has none
 * @property {Row[]} rows
 * @property {number} reachM lower bound on the lengths of all objects that the device does not have
 * @property {number} marginM distance that the device may move in every direction
 * @property {any} spec of the kind: top_k or boolean
 * @property {{lon: number, lat: number} | null} position true position of the device, if it is known
 * @property {number} movedM distance of this position from the anchor; 0 if it is not known
 */

/**
 * Inspect a device and one of its subscriptions.
 * @param {string} deviceId
 * @param {number | null} subscriptionId null for the first top-k one, or the first
 * @param {Plane | null} plane
 * @returns {Promise<Inspection>}
 */
export async function inspect(deviceId, subscriptionId, plane) {
    const { device } = await call("inspect", { device_id: deviceId });
    const known = device.subscriptions;
    const wanted =
        known.find((/** @type {any} */ one) => one.subscription_id === subscriptionId) ??
        known.find((/** @type {any} */ one) => one.spec.top_k) ??
        known[0];
    if (wanted === undefined) {
        return { device, subscription: null, rows: [], reachM: Infinity, marginM: Infinity, spec: null, position: null, movedM: 0 };
    }
    return inspected(device, wanted, plane);
}

/** @param {any} device @param {any} wanted @param {Plane | null} plane @returns {Promise<Inspection>} */
async function inspected(device, wanted, plane) {
    const nextId = wanted.reach?.object_id ?? "0";
    const subject = { device_id: device.device_id, subscription_id: wanted.subscription_id, object_id: nextId };
    const { subscription } = await call("inspect", { subscription: subject });
    const { top_k, boolean } = subscription.spec;
    const common = { device, subscription, spec: top_k ?? boolean, position: null, movedM: 0 };
    if (boolean) {
        const rows = rangeRows(heldRows(subscription), boolean, anchorOf(subscription, plane), plane);
        return { ...common, rows, reachM: Infinity, marginM: Number(subscription.slack?.slack_m ?? Infinity) };
    }
    const scale = top_k.alpha / (top_k.distance_scale_m || maxdistOf(plane));
    const rows = topKRows(heldRows(subscription), top_k.k, scale);
    const reachM = Number(subscription.reach?.length_m ?? Infinity);
    const next = nextId === "0" ? null : await nextRow(subscription, nextId, scale);
    return {
        ...common,
        rows: next === null ? rows : [...rows, next],
        reachM,
        marginM: marginM(rows.map(({ lengthM }) => lengthM), top_k.k, reachM),
    };
}

/** @param {any} subscription @param {Plane | null} plane */
function anchorOf({ anchor_position }, plane) {
    return plane === null || !anchor_position ? null : project(anchor_position, plane);
}

/** @param {Plane | null} plane */
function maxdistOf(plane) {
    return plane === null ? NaN : plane.maxdist_m;
}

/** @param {any} subscription @returns {Row[]} */
function heldRows({ held }) {
    return held.map((/** @type {any} */ one) => ({
        id: one.object_id,
        name: one.key || `#${one.object_id}`,
        keywords: one.keywords,
        kind: "buffer",
        rank: 0,
        lengthM: one.length_m,
        textM: one.r_m,
        score: NaN,
        position: one.position ?? null,
    }));
}

/** Divide held objects, best first, into the result and the buffer. @param {Row[]} rows @param {number} k @param {number} scale @returns {Row[]} */
export function topKRows(rows, k, scale) {
    return rows.map((row, i) => ({ ...row, kind: i < k ? "result" : "buffer", rank: i + 1, score: row.lengthM * scale }));
}

/**
 * Divide held objects into matches of a range and objects beyond it, by their points.
 * @param {Row[]} rows nearest first
 * @param {any} spec
 * @param {Point | null} middle of a range that moves
 * @param {Plane | null} plane
 * @returns {Row[]}
 */
export function rangeRows(rows, spec, middle, plane) {
    const isIn = rows.map((row) => isMatch(row, spec, middle, plane));
    const matches = rows.filter((_, i) => isIn[i]).map((row, i) => ({ ...row, kind: /** @type {const} */ ("result"), rank: i + 1 }));
    return [...matches, ...rows.filter((_, i) => !isIn[i])];
}

/** @param {Row} row @param {any} spec @param {Point | null} middle @param {Plane | null} plane */
function isMatch({ lengthM, position }, { moving, circle: disc, rectangle: box }, middle, plane) {
    if (!moving) return true;
    if (disc) return lengthM <= disc.radius_m;
    if (middle === null || plane === null || position === null) return true;
    const { x_m, y_m } = project(position, plane);
    return Math.abs(x_m - middle.x_m) <= box.width_m / 2 && Math.abs(y_m - middle.y_m) <= box.height_m / 2;
}

/**
 * The object whose length is the reach: the first that the device does not have.
 * @param {any} subscription
 * @param {string} id
 * @param {number} scale
 * @returns {Promise<Row | null>}
 */
async function nextRow({ judgement, held }, id, scale) {
    if (!judgement || !(judgement.length_m > 0)) return null;
    const found = await call("inspect", { object_id: id }).catch(() => null);
    const object = found?.object?.object;
    if (!object) return null;
    return {
        id,
        name: object.key || `#${id}`,
        keywords: object.keywords,
        kind: "next",
        rank: judgement.rank || held.length + 1,
        lengthM: judgement.length_m,
        textM: judgement.r_m,
        score: judgement.length_m * scale,
        position: object.position ?? null,
    };
}

/**
 * Put an inspection into the scene: region, range, anchor and objects.
 * @param {Scene} scene
 * @param {Inspection} found
 * @param {Plane} plane
 */
export function drawInspection(scene, { subscription, rows, reachM, spec, position, movedM }, plane) {
    scene.release();
    if (subscription === null || !subscription.anchor_position) return;
    const anchor = project(subscription.anchor_position, plane);
    scene.anchor = place(subscription.anchor_position);
    scene.here = position === null ? scene.anchor : place(position);
    scene.held = rows
        .filter(({ position }) => position !== null)
        .map((row) => ({ ...place(/** @type {any} */ (row.position)), kind: row.kind, rank: row.rank }));
    const middle = position === null ? anchor : project(position, plane);
    /** @type {{regions: (Point[] | null)[], ranges: (Point[] | null)[]}} */
    const outlines = subscription.spec.top_k
        ? { regions: [topKOutline(anchor, rows, spec.k, reachM + movedM, plane)], ranges: [] }
        : booleanOutlines(anchor, middle, spec, Number(subscription.slack?.slack_m ?? Infinity), plane);
    scene.regions = outlines.regions.filter(hasPoints).map((one) => outlineOf(one, plane));
    scene.ranges = outlines.ranges.filter(hasPoints).map((one) => outlineOf(one, plane));
}

/** @param {Point[] | null} points @returns {points is Point[]} */
function hasPoints(points) {
    return points !== null && points.length > 0;
}

/** @param {{lon: number, lat: number}} position */
function place({ lon, lat }) {
    return { x: mercatorX(lon), y: mercatorY(lat) };
}

/**
 * @param {Point} anchor
 * @param {Row[]} rows
 * @param {number} k
 * @param {number} reachM
 * @param {Plane} plane
 */
function topKOutline(anchor, rows, k, reachM, plane) {
    const held = rows
        .filter(({ kind, position }) => kind !== "next" && position !== null)
        .map(({ position, textM }) => ({ ...project(/** @type {any} */ (position), plane), r_m: textM }));
    return anchoredOutline(anchor, held, k, reachM);
}

/**
 * @param {Point} anchor
 * @param {Point} middle of the range
 * @param {any} spec
 * @param {number} slackM
 * @param {Plane} plane
 */
function booleanOutlines(anchor, middle, spec, slackM, plane) {
    if (!spec.moving) return { regions: [], ranges: [fixedRange(anchor, spec, plane)] };
    const { circle: disc, rectangle: box } = spec;
    const isBounded = Number.isFinite(slackM) && slackM > 0;
    if (disc) {
        return { regions: [isBounded ? circle(anchor, slackM) : null], ranges: [circle(middle, disc.radius_m)] };
    }
    return {
        regions: [isBounded ? rectangle(anchor, slackM, slackM) : null],
        ranges: [rectangle(middle, box.width_m / 2, box.height_m / 2)],
    };
}

/** @param {Point} middle @param {any} spec @param {Plane} plane @returns {Point[]} */
function fixedRange(middle, { circle: disc, rectangle: box, polygon }, plane) {
    if (disc) return circle(middle, disc.radius_m);
    const { lon_min: west, lat_min: south, lon_max: east, lat_max: north } = box?.bounds ?? {};
    const corners = box
        ? [[west, south], [east, south], [east, north], [west, north]].map(([lon, lat]) => ({ lon, lat }))
        : polygon.outer.vertices;
    return corners.map((/** @type {{lon: number, lat: number}} */ one) => project(one, plane));
}
