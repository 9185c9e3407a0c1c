/**
 * A recorded run: roads, objects, true positions by tick, and the reports that devices made.
 *
 * The file is eight bytes, the length of a header, the header as JSON, then columns of numbers; see
 * simulator/run_map_file.py, which writes it. Positions are in units of 1e-7 degrees.
 */

import { mercatorX, mercatorY } from "./mercator.js";
import { GRID, ROWS_MAX } from "./scene.js";

/** @typedef {import("./scene.js").Scene} Scene */

const MAGIC = "NCRUN001";
const E7 = 1e-7;
/** Stands for a device without a position at a tick. */
const NOWHERE = -(2 ** 31);
const OUT_OF_SIGHT_DEG = 1;
/** Parts of a run in the chart of reports. */
const RATE_PARTS = 60;
const TYPES = /** @type {const} */ ({ int32: Int32Array, uint32: Uint32Array, uint8: Uint8Array });

/**
 * @typedef {object} Header
 * @property {string} name
 * @property {[number, number, number, number]} area
 * @property {number} start_ms
 * @property {number} step_ms
 * @property {number} steps
 * @property {string[]} device_ids
 * @property {string[]} road_classes
 * @property {string[]} keywords
 * @property {number} ring_vertices
 * @property {number[][][]} water rings of longitudes and latitudes
 * @property {Record<string, {type: keyof typeof TYPES, offset: string, length: number}>} columns
 */

/** @typedef {Record<string, Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Uint8Array<ArrayBuffer>>} Columns */

export class Recording {
    /** @param {Header} header @param {Columns} columns */
    constructor(header, columns) {
        this.header = header;
        this.columns = columns;
    }

    get lengthMs() {
        return Math.max(0, this.header.steps - 1) * this.header.step_ms;
    }

    /** Whether there is more than roads. */
    get hasRun() {
        return this.header.steps > 1;
    }

    /** Roads as GeoJSON, one feature for each class. */
    roads() {
        const { road_class, road_lon1, road_lat1, road_lon2, road_lat2 } = this.columns;
        const features = this.header.road_classes.map((name) => ({
            type: "Feature",
            properties: { road_class: name },
            geometry: { type: "MultiLineString", coordinates: /** @type {number[][][]} */ ([]) },
        }));
        for (let i = 0; i < road_class.length; i++) {
            features[road_class[i]].geometry.coordinates.push([
                [road_lon1[i] * E7, road_lat1[i] * E7],
                [road_lon2[i] * E7, road_lat2[i] * E7],
            ]);
        }
        return { type: "FeatureCollection", features };
    }

    /**
     * Rings of lakes and of the sea. The simulator cuts the sea off at a rectangle: its straight edges are
     * moved out of sight.
     */
    water() {
        return this.header.water.map((ring) => {
            const edges = [0, 1].map((axis) => ring.map((place) => place[axis]));
            return ring.map((place) => place.map((value, axis) => beyond(value, edges[axis])));
        });
    }

    /**
     * Fill a scene with a moment of the run. O(devices + objects + reports).
     * @param {Scene} scene
     * @param {number} runMs since the start
     * @param {string} keyword of the objects that are shown; empty for all
     * @returns {number} live objects
     */
    fill(scene, runMs, keyword) {
        scene.nowMs = this.header.start_ms + runMs;
        const objects = this.#fillObjects(scene, runMs, keyword);
        this.#fillDevices(scene, runMs);
        this.#fillReports(scene, runMs);
        return objects;
    }

    /** Numbers of the run at a moment. @param {number} runMs */
    figures(runMs) {
        const { report_ms } = this.columns;
        const moves = this.header.device_ids.length * Math.floor(runMs / this.header.step_ms);
        return { reports: firstAfter(report_ms, runMs), moves };
    }

    /** Reports a second in equal parts of the run, and the time at which each part ends. */
    rates() {
        const { report_ms } = this.columns;
        const partMs = this.lengthMs / RATE_PARTS;
        return Array.from({ length: RATE_PARTS }, (_, i) => {
            const count = firstAfter(report_ms, (i + 1) * partMs) - firstAfter(report_ms, i * partMs);
            return { timeMs: this.header.start_ms + (i + 1) * partMs, rate: count / (partMs / 1000) };
        });
    }

    /** Return the number of live objects. @param {Scene} scene @param {number} runMs @param {string} keyword */
    #fillObjects(scene, runMs, keyword) {
        const { object_ms, object_end_ms, object_lon, object_lat } = this.columns;
        const wanted = keyword ? this.#having(keyword) : null;
        const start = this.header.start_ms;
        const published = firstAfter(object_ms, runMs);
        const live = [];
        for (let i = 0; i < published; i++) {
            if (object_end_ms[i] > runMs && (wanted === null || wanted.has(i))) live.push(i);
        }
        scene.objects.clear();
        scene.objectGrid = live.length > ROWS_MAX.objects ? this.#grid(live, object_lon, object_lat) : null;
        if (scene.objectGrid !== null) return live.length;
        for (const i of live) {
            const [lon, lat] = [object_lon[i] * E7, object_lat[i] * E7];
            scene.objects.add(i, lon, lat, start + object_ms[i], start + object_end_ms[i]);
        }
        return live.length;
    }

    /** Numbers of places by cell of the area. @param {number[]} rows @param {ArrayLike<number>} lons @param {ArrayLike<number>} lats */
    #grid(rows, lons, lats) {
        const bounds = this.header.area;
        const [west, south, east, north] = bounds;
        const counts = new Uint32Array(GRID.columns * GRID.rows);
        for (const i of rows) {
            const column = Math.floor(((lons[i] * E7 - west) / (east - west)) * GRID.columns);
            const row = Math.floor(((lats[i] * E7 - south) / (north - south)) * GRID.rows);
            const isInside = column >= 0 && row >= 0 && column < GRID.columns && row < GRID.rows;
            if (isInside) counts[row * GRID.columns + column]++;
        }
        return { ...GRID, bounds, counts };
    }

    /** Numbers of the objects that have a keyword. @param {string} keyword */
    #having(keyword) {
        const number = this.header.keywords.indexOf(keyword.trim().toLowerCase());
        const { keyword_object, keyword_number } = this.columns;
        const found = new Set();
        for (let i = 0; i < keyword_number.length; i++) {
            if (keyword_number[i] === number) found.add(keyword_object[i]);
        }
        return found;
    }

    /** True positions, between two ticks in proportion. @param {Scene} scene @param {number} runMs */
    #fillDevices({ devices }, runMs) {
        const { track_lon, track_lat } = this.columns;
        const { device_ids, steps, step_ms } = this.header;
        const step = Math.min(Math.floor(runMs / step_ms), steps - 1);
        const next = Math.min(step + 1, steps - 1);
        const part = Math.min(1, runMs / step_ms - step);
        devices.clear();
        for (let i = 0; i < device_ids.length; i++) {
            const [from, to] = [step * device_ids.length + i, next * device_ids.length + i];
            if (track_lon[from] === NOWHERE) continue;
            const end = track_lon[to] === NOWHERE ? from : to;
            const lon = (track_lon[from] + part * (track_lon[end] - track_lon[from])) * E7;
            const lat = (track_lat[from] + part * (track_lat[end] - track_lat[from])) * E7;
            devices.report(i, device_ids[i], lon, lat, 0, 0);
            const row = /** @type {number} */ (devices.rowOf(i));
            [devices.trueX[row], devices.trueY[row]] = [devices.x[row], devices.y[row]];
        }
    }

    /** The last report of each device, and the region that the chosen one has. @param {Scene} scene @param {number} runMs */
    #fillReports(scene, runMs) {
        const { report_ms, report_device, report_lon, report_lat } = this.columns;
        const { devices } = scene;
        const count = firstAfter(report_ms, runMs);
        scene.release();
        for (let i = 0; i < count; i++) {
            const row = devices.rowOf(report_device[i]);
            if (row === undefined) continue;
            devices.x[row] = mercatorX(report_lon[i] * E7);
            devices.y[row] = mercatorY(report_lat[i] * E7);
            devices.reportedMs[row] = this.header.start_ms + report_ms[i];
        }
        this.#fillRegion(scene, runMs);
    }

    /** The region of the chosen device: the last one until now. @param {Scene} scene @param {number} runMs */
    #fillRegion(scene, runMs) {
        const { ring_lon, ring_lat, region_ms, region_device } = this.columns;
        const vertices = this.header.ring_vertices;
        const chosen = this.header.device_ids.indexOf(scene.chosen);
        const row = scene.devices.rowOf(chosen);
        if (row === undefined) return;
        scene.anchor = { x: scene.devices.x[row], y: scene.devices.y[row] };
        let last = firstAfter(region_ms, runMs) - 1;
        while (last >= 0 && region_device[last] !== chosen) last--;
        if (last < 0 || ring_lon[last * vertices] === NOWHERE) return;
        const outline = new Float64Array(vertices * 2);
        for (let i = 0; i < vertices; i++) {
            outline[2 * i] = mercatorX(ring_lon[last * vertices + i] * E7);
            outline[2 * i + 1] = mercatorY(ring_lat[last * vertices + i] * E7);
        }
        scene.regions = [outline];
    }

    /** Reports of a device up to a moment, and positions that polling would have sent. @param {string} id @param {number} runMs */
    deviceFigures(id, runMs) {
        const number = this.header.device_ids.indexOf(id);
        const { report_ms, report_device } = this.columns;
        let reports = 0;
        let lastMs = 0;
        for (let i = 0; i < firstAfter(report_ms, runMs); i++) {
            if (report_device[i] !== number) continue;
            reports++;
            lastMs = report_ms[i];
        }
        return { isKnown: number >= 0, reports, silentMs: runMs - lastMs, moves: Math.floor(runMs / this.header.step_ms) };
    }
}

/** Return the number of entries of a sorted column that are not after a value. O(log n). @param {ArrayLike<number>} column @param {number} value */
function firstAfter(column, value) {
    let [low, high] = [0, column.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (column[middle] <= value) low = middle + 1;
        else high = middle;
    }
    return low;
}

/** Move a coordinate out of sight that several corners of a ring have as their extreme. @param {number} value @param {number[]} all */
function beyond(value, all) {
    const isEdge = all.slice(1).filter((one) => one === value).length > 1;
    if (isEdge && value === Math.min(...all)) return value - OUT_OF_SIGHT_DEG;
    return isEdge && value === Math.max(...all) ? value + OUT_OF_SIGHT_DEG : value;
}

/**
 * Read a recorded run.
 * @param {ArrayBuffer} buffer
 * @returns {Recording}
 */
export function readRecording(buffer) {
    const magic = new TextDecoder().decode(new Uint8Array(buffer, 0, Math.min(8, buffer.byteLength)));
    if (magic !== MAGIC) throw new Error("The file is no recorded run of this version.");
    const length = new DataView(buffer).getUint32(8, true);
    const text = new TextDecoder().decode(new Uint8Array(buffer, 12, length));
    /** @type {Header} */
    const header = JSON.parse(text);
    /** @type {Columns} */
    const columns = {};
    for (const [name, column] of Object.entries(header.columns)) {
        columns[name] = new TYPES[column.type](buffer, Number(column.offset), column.length);
    }
    return new Recording(header, columns);
}
