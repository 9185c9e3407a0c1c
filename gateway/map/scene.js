/**
 * The content of the canvas: columns of typed arrays, which grow by doubling.
 *
 * Live frames and recorded runs fill the same scene. Positions are normalised Mercator.
 */

import { mercatorX, mercatorY } from "./mercator.js";

const FIRST_CAPACITY = 1024;

/** Devices by number: the last report of each, and in recorded runs its true position. */
export class Devices {
    count = 0;
    numbers = new Float64Array(FIRST_CAPACITY);
    x = new Float64Array(FIRST_CAPACITY);
    y = new Float64Array(FIRST_CAPACITY);
    /** Time of the last report, in milliseconds. */
    reportedMs = new Float64Array(FIRST_CAPACITY);
    /** Radius of the disc about the position that has the device, in metres; 0 for an exact position. */
    radiusM = new Float64Array(FIRST_CAPACITY);
    /** True positions; NaN where none is known. */
    trueX = new Float64Array(FIRST_CAPACITY);
    trueY = new Float64Array(FIRST_CAPACITY);
    /** @type {string[]} */
    ids = [];
    /** @type {Map<number, number>} */
    #rows = new Map();

    clear() {
        this.count = 0;
        this.ids.length = 0;
        this.#rows.clear();
    }

    /** Return the row of a device; undefined if there is none. @param {number} number */
    rowOf(number) {
        return this.#rows.get(number);
    }

    /**
     * Add a device, or move it. O(1), amortised.
     * @param {number} number
     * @param {string} id
     * @param {number} lon
     * @param {number} lat
     * @param {number} reportedMs
     * @param {number} radiusM
     */
    report(number, id, lon, lat, reportedMs, radiusM) {
        let row = this.#rows.get(number);
        if (row === undefined) {
            row = this.count++;
            if (row === this.x.length) grow(this, DEVICE_COLUMNS);
            this.#rows.set(number, row);
            this.trueX[row] = this.trueY[row] = NaN;
        }
        this.numbers[row] = number;
        this.ids[row] = id;
        this.x[row] = mercatorX(lon);
        this.y[row] = mercatorY(lat);
        this.reportedMs[row] = reportedMs;
        this.radiusM[row] = radiusM;
    }

    /** Remove a device, if it is there. The last row takes its place. O(1). @param {number} number */
    remove(number) {
        const row = this.#rows.get(number);
        if (row === undefined) return;
        this.#rows.delete(number);
        const last = --this.count;
        const lastId = /** @type {string} */ (this.ids.pop());
        if (row === last) return;
        for (const name of DEVICE_COLUMNS) this[name][row] = this[name][last];
        this.ids[row] = lastId;
        this.#rows.set(this.numbers[row], row);
    }
}

/** Objects by id. */
export class Objects {
    count = 0;
    ids = new Float64Array(FIRST_CAPACITY);
    x = new Float64Array(FIRST_CAPACITY);
    y = new Float64Array(FIRST_CAPACITY);
    createdMs = new Float64Array(FIRST_CAPACITY);
    expiryMs = new Float64Array(FIRST_CAPACITY);
    /** @type {Map<number, number>} */
    #rows = new Map();

    clear() {
        this.count = 0;
        this.#rows.clear();
    }

    /**
     * Add an object, or replace the row of its id. O(1), amortised.
     * @param {number} id
     * @param {number} lon
     * @param {number} lat
     * @param {number} createdMs
     * @param {number} expiryMs
     */
    add(id, lon, lat, createdMs, expiryMs) {
        let row = this.#rows.get(id);
        if (row === undefined) {
            row = this.count++;
            if (row === this.x.length) grow(this, OBJECT_COLUMNS);
            this.#rows.set(id, row);
        }
        this.ids[row] = id;
        this.x[row] = mercatorX(lon);
        this.y[row] = mercatorY(lat);
        this.createdMs[row] = createdMs;
        this.expiryMs[row] = expiryMs;
    }

    /** Remove an object, if it is there. The last row takes its place. O(1). @param {number} id */
    remove(id) {
        const row = this.#rows.get(id);
        if (row === undefined) return;
        this.#rows.delete(id);
        const last = --this.count;
        if (row === last) return;
        for (const name of OBJECT_COLUMNS) this[name][row] = this[name][last];
        this.#rows.set(this.ids[row], row);
    }
}

const DEVICE_COLUMNS = /** @type {const} */ (["numbers", "x", "y", "reportedMs", "radiusM", "trueX", "trueY"]);
const OBJECT_COLUMNS = /** @type {const} */ (["ids", "x", "y", "createdMs", "expiryMs"]);

/**
 * Double the capacity of columns.
 * @template {string} Name
 * @param {Record<Name, Float64Array<ArrayBuffer>>} table
 * @param {readonly Name[]} names
 */
function grow(table, names) {
    for (const name of names) {
        const larger = new Float64Array(table[name].length * 2);
        larger.set(table[name]);
        table[name] = larger;
    }
}

/**
 * Counts by cell, row by row from the south-west.
 * @typedef {object} Grid
 * @property {number} columns
 * @property {number} rows
 * @property {[number, number, number, number]} bounds west, south, east, north in degrees
 * @property {ArrayLike<number>} counts
 */

/** Rows that are drawn as points; of more, the page shows density. */
export const ROWS_MAX = { devices: 4000, objects: 15_000 };
/** Cells of a density. */
export const GRID = { columns: 96, rows: 64 };

/** A line or an area in normalised Mercator: x, y, x, y, ... @typedef {Float64Array} Outline */

/** Everything that is drawn. */
export class Scene {
    devices = new Devices();
    objects = new Objects();
    /** @type {Grid | null} */
    deviceGrid = null;
    /** @type {Grid | null} */
    objectGrid = null;
    /** Time of the server or of the run. */
    nowMs = 0;
    /** The chosen device's id. */
    chosen = "";
    /** @type {Outline[]} where the chosen device may move without a report */
    regions = [];
    /** @type {Outline[]} the ranges of its boolean subscriptions */
    ranges = [];
    /** @type {{x: number, y: number, kind: "result" | "buffer" | "next", rank: number}[]} */
    held = [];
    /** @type {{x: number, y: number} | null} where the chosen subscription was evaluated */
    anchor = null;
    /** @type {{x: number, y: number} | null} where the result is that of the device: its true position, or the anchor */
    here = null;

    /** Forget the chosen device. */
    release() {
        this.regions = [];
        this.ranges = [];
        this.held = [];
        this.anchor = null;
        this.here = null;
    }
}
