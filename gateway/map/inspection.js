/** What the server knows of a chosen device, read with `inspect`, as shapes and rows to draw. */

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
 * @typedef {object} Inspection
 * @property {any} device
 * @property {any} subscription the chosen one, with held objects; null if the device has none
 * @property {Row[]} rows
 * @property {number} reachM
 * @property {number} marginM distance that the device may move in every direction
 * @property {any} spec of the kind: top_k or boolean
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
        return { device, subscription: null, rows: [], reachM: Infinity, marginM: Infinity, spec: null };
    }
    return inspected(device, wanted, plane);
}

/** @param {any} device @param {any} wanted @param {Plane | null} plane @returns {Promise<Inspection>} */
async function inspected(device, wanted, plane) {
    const nextId = wanted.reach?.object_id ?? "0";
    const subject = { device_id: device.device_id, subscription_id: wanted.subscription_id, object_id: nextId };
    const { subscription } = await call("inspect", { subscription: subject });
    const { top_k, boolean } = subscription.spec;
    const scale = top_k ? top_k.alpha / (top_k.distance_scale_m || maxdistOf(plane)) : 0;
    const rows = heldRows(subscription, top_k?.k ?? Infinity, scale);
    const reachM = Number(subscription.reach?.length_m ?? Infinity);
    const next = nextId === "0" ? null : await nextRow(subscription, nextId, scale);
    return {
        device,
        subscription,
        rows: next === null ? rows : [...rows, next],
        reachM,
        marginM: top_k ? marginM(lengths(rows), top_k.k, reachM) : Number(subscription.slack?.slack_m ?? Infinity),
        spec: top_k ?? boolean,
    };
}

/** @param {Plane | null} plane */
function maxdistOf(plane) {
    return plane === null ? NaN : plane.maxdist_m;
}

/** @param {Row[]} rows */
function lengths(rows) {
    return rows.map(({ lengthM, textM }) => ({ x_m: 0, y_m: 0, r_m: textM, length_m: lengthM }));
}

/** @param {any} subscription @param {number} k @param {number} scale @returns {Row[]} */
function heldRows({ held }, k, scale) {
    return held.map((/** @type {any} */ one, /** @type {number} */ i) => ({
        id: one.object_id,
        name: one.key || `#${one.object_id}`,
        keywords: one.keywords,
        kind: i < k ? "result" : "buffer",
        rank: i + 1,
        lengthM: one.length_m,
        textM: one.r_m,
        score: one.length_m * scale,
        position: one.position ?? null,
    }));
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
export function drawInspection(scene, { subscription, rows, reachM, spec }, plane) {
    scene.release();
    if (subscription === null || !subscription.anchor_position) return;
    const anchor = project(subscription.anchor_position, plane);
    scene.anchor = place(subscription.anchor_position);
    scene.held = rows
        .filter(({ position }) => position !== null)
        .map((row) => ({ ...place(/** @type {any} */ (row.position)), kind: row.kind, rank: row.rank }));
    /** @type {{regions: (Point[] | null)[], ranges: (Point[] | null)[]}} */
    const outlines = subscription.spec.top_k
        ? { regions: [topKOutline(anchor, rows, spec.k, reachM, plane)], ranges: [] }
        : booleanOutlines(anchor, spec, Number(subscription.slack?.slack_m ?? Infinity), plane);
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
        .map(({ position, textM, lengthM }) => ({
            ...project(/** @type {any} */ (position), plane),
            r_m: textM,
            length_m: lengthM,
        }));
    return anchoredOutline(anchor, held, k, reachM);
}

/**
 * @param {Point} anchor
 * @param {any} spec
 * @param {number} slackM
 * @param {Plane} plane
 */
function booleanOutlines(anchor, spec, slackM, plane) {
    if (!spec.moving) return { regions: [], ranges: [fixedRange(anchor, spec, plane)] };
    const { circle: disc, rectangle: box } = spec;
    const isBounded = Number.isFinite(slackM) && slackM > 0;
    if (disc) {
        return { regions: [isBounded ? circle(anchor, slackM) : null], ranges: [circle(anchor, disc.radius_m)] };
    }
    return {
        regions: [isBounded ? rectangle(anchor, slackM, slackM) : null],
        ranges: [rectangle(anchor, box.width_m / 2, box.height_m / 2)],
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
