/**
 * A device of a recorded run as an inspection, with the shapes and rows of a live one.
 *
 * A device ranks the live objects that it holds by their lengths at its position; they are enough while it
 * is silent. The page does the same with the objects and the true position of the file, so the result is
 * the device's own, at the last tick.
 */

import { rangeRows, topKRows } from "./inspection.js";
import { countUntil, E7, NO_OBJECT } from "./recorded_file.js";
import { marginM, metres, project } from "./region.js";

/** @typedef {import("./inspection.js").Inspection} Inspection */
/** @typedef {import("./inspection.js").Row} Row */
/** @typedef {import("./recording.js").Recording} Recording */
/** @typedef {import("./region.js").Plane} Plane */
/** @typedef {import("./region.js").Point} Point */
/** @typedef {{lon: number, lat: number}} Position */

/**
 * The objects of a device from a time on, and their bound.
 * @typedef {object} Holding
 * @property {Position} anchor
 * @property {number} boundM the reach at the anchor, or the slack; NaN after the end of the record
 * @property {boolean} isPart whether more objects match than the server sends
 * @property {number} next the object at the reach
 * @property {Map<number, number>} held constant parts of the lengths of objects, in metres
 */

/**
 * The true position of a device, and its objects.
 * @typedef {object} Moment
 * @property {Recording} recording
 * @property {number} runMs
 * @property {Holding} holding
 * @property {Point} here
 * @property {Point} anchor
 */

/**
 * Inspect a device at a moment; null if there is no record of its result.
 * @param {Recording} recording
 * @param {string} deviceId
 * @param {number} runMs
 * @returns {Inspection | null}
 */
export function inspectRecorded(recording, deviceId, runMs) {
    const { specs, plane, device_ids } = recording.header;
    const device = device_ids.indexOf(deviceId);
    const spec = specs[device];
    const position = recording.positionAt(device, runMs);
    const holding = holdingAt(recording, device, runMs);
    if (spec === undefined || holding === null || Number.isNaN(holding.boundM) || position === null) return null;
    const here = project(position, plane);
    const anchor = project(holding.anchor, plane);
    const subscription = {
        spec,
        awake: true,
        anchor_position: holding.anchor,
        slack: { slack_m: holding.boundM, too_many: holding.isPart },
    };
    const moment = { recording, runMs, holding, here, anchor };
    return {
        device: { device_id: deviceId, subscriptions: [subscription] },
        subscription,
        position,
        movedM: metres(here, anchor),
        ...(spec.top_k ? topK(spec.top_k, moment) : range(spec.boolean, moment)),
    };
}

/** @param {any} spec @param {Moment} moment */
function topK(spec, moment) {
    const { recording, holding, here, anchor } = moment;
    const { plane } = recording.header;
    const scale = spec.alpha / (spec.distance_scale_m || plane.maxdist_m);
    const rows = topKRows(heldRows(moment), spec.k, scale);
    const reachM = holding.boundM - metres(here, anchor);
    const next = nextRow(moment, rows.length, scale);
    return {
        spec,
        reachM,
        rows: next === null ? rows : [...rows, next],
        marginM: marginM(rows.map(({ lengthM }) => lengthM), spec.k, reachM),
    };
}

/** @param {any} spec @param {Moment} moment */
function range(spec, moment) {
    const { recording, holding, here, anchor } = moment;
    return {
        spec,
        reachM: Infinity,
        rows: rangeRows(heldRows(moment), spec, here, recording.header.plane),
        marginM: Math.max(0, holding.boundM - metres(here, anchor)),
    };
}

/**
 * Apply the changes of a device until a moment; null if there is none. O(changes of all devices).
 * @param {Recording} recording @param {number} device @param {number} runMs
 * @returns {Holding | null}
 */
function holdingAt({ columns }, device, runMs) {
    const { holding_ms, holding_device, holding_lon, holding_lat } = columns;
    const count = countUntil(holding_ms, runMs);
    const held = new Map();
    let last = -1;
    for (let row = 0; row < count; row++) {
        if (holding_device[row] !== device) continue;
        last = row;
        applyChanges(held, columns, row);
    }
    if (last < 0) return null;
    return {
        anchor: { lon: holding_lon[last] * E7, lat: holding_lat[last] * E7 },
        boundM: columns.holding_bound_m[last],
        isPart: columns.holding_is_part[last] !== 0,
        next: columns.holding_next[last],
        held,
    };
}

/** @param {Map<number, number>} held @param {import("./recorded_file.js").Columns} columns @param {number} row */
function applyChanges(held, { holding_end, held_object, held_text_m }, row) {
    for (let i = row === 0 ? 0 : holding_end[row - 1]; i < holding_end[row]; i++) {
        if (Number.isNaN(held_text_m[i])) held.delete(held_object[i]);
        else held.set(held_object[i], held_text_m[i]);
    }
}

/** Held objects that are alive, best first; of equal length in the order of publication. @param {Moment} moment */
function heldRows({ recording, holding, here, runMs }) {
    return [...holding.held]
        .filter(([object]) => recording.isLive(object, runMs))
        .map(([object, textM]) => objectRow(recording, object, textM, here))
        .sort((left, right) => left.lengthM - right.lengthM || Number(left.id) - Number(right.id));
}

/**
 * The first object that the device does not have. Its length at the anchor is the reach.
 * @param {Moment} moment
 * @param {number} heldCount
 * @param {number} scale
 * @returns {Row | null}
 */
function nextRow({ recording, holding, here, anchor, runMs }, heldCount, scale) {
    const { next, boundM } = holding;
    if (next === NO_OBJECT || !recording.isLive(next, runMs)) return null;
    const place = project(recording.placeOf(next), recording.header.plane);
    const row = objectRow(recording, next, Math.max(0, boundM - metres(place, anchor)), here);
    return { ...row, kind: "next", rank: heldCount + 1, score: row.lengthM * scale };
}

/** @param {Recording} recording @param {number} object @param {number} textM @param {Point} here @returns {Row} */
function objectRow(recording, object, textM, here) {
    const position = recording.placeOf(object);
    return {
        id: String(object),
        name: recording.header.object_keys[object],
        keywords: recording.keywordsOf(object),
        kind: "buffer",
        rank: 0,
        lengthM: metres(project(position, recording.header.plane), here) + textM,
        textM,
        score: NaN,
        position,
    };
}
