/** A recorded run: objects, true positions by tick, and the reports of devices. */

import { mercatorX, mercatorY } from "./mercator.js";
import { countUntil, E7, NOWHERE, readFile } from "./recorded_file.js";
import { GRID, ROWS_MAX } from "./scene.js";

/** @typedef {import("./recorded_file.js").Header} Header */
/** @typedef {import("./recorded_file.js").Columns} Columns */
/** @typedef {import("./scene.js").Scene} Scene */

/**
 * Figures of a device at a moment.
 * @typedef {object} DeviceFigures
 * @property {boolean} isKnown
 * @property {boolean} isLogged whether the run has its reports
 * @property {boolean} isAttached
 * @property {boolean} hasSpec whether the run has results of a subscription
 * @property {number} reports
 * @property {number} moves positions after the one with which it attached
 * @property {number} silentMs since the last report, or since it attached
 */

/** Parts of a run in the chart of reports. */
const RATE_PARTS = 60;

export class Recording {
    /** @type {Uint32Array} the step at which each device appears; the number of steps for never */
    #firstSteps;
    /** @type {Set<number>} */
    #logged;

    /** @param {Header} header @param {Columns} columns */
    constructor(header, columns) {
        this.header = header;
        this.columns = columns;
        this.#logged = new Set(header.logged);
        this.#firstSteps = Uint32Array.from(header.device_ids, (_, device) => this.#firstStep(device));
    }

    /** Whether the file has reports and results: those of a replay. */
    get hasLog() {
        return this.#logged.size > 0;
    }

    get lengthMs() {
        return Math.max(0, this.header.steps - 1) * this.header.step_ms;
    }

    /** Whether there is more than roads. */
    get hasRun() {
        return this.header.steps > 1;
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

    /**
     * Reports of the logged devices up to a moment, null without a log, and the positions that they had.
     * The position with which a device attaches is neither.
     * @param {number} runMs
     */
    figures(runMs) {
        const reports = this.hasLog ? countUntil(this.columns.report_ms, runMs) : null;
        return { reports, moves: this.columns.moves[this.#stepAt(runMs)] };
    }

    /** Reports and positions a second in equal parts of the run, and the time at which each part ends. */
    rates() {
        const partMs = this.lengthMs / RATE_PARTS;
        return Array.from({ length: RATE_PARTS }, (_, i) => {
            const [before, after] = [this.figures(i * partMs), this.figures((i + 1) * partMs)];
            const reports = Number(after.reports) - Number(before.reports);
            const [seconds, timeMs] = [partMs / 1000, this.header.start_ms + (i + 1) * partMs];
            return { timeMs, reports: reports / seconds, moves: (after.moves - before.moves) / seconds };
        });
    }

    /** @param {number} runMs */
    #stepAt(runMs) {
        return Math.min(Math.floor(runMs / this.header.step_ms), this.header.steps - 1);
    }

    /** @param {number} device */
    #firstStep(device) {
        const { steps, device_ids } = this.header;
        let step = 0;
        while (step < steps && this.columns.track_lon[step * device_ids.length + device] === NOWHERE) step++;
        return step;
    }

    /** Return the number of live objects. @param {Scene} scene @param {number} runMs @param {string} keyword */
    #fillObjects(scene, runMs, keyword) {
        const { object_ms, object_end_ms, object_lon, object_lat } = this.columns;
        const wanted = keyword ? this.#having(keyword) : null;
        const start = this.header.start_ms;
        const published = countUntil(object_ms, runMs);
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

    /**
     * The last report of each device: until the first one, the position with which it attached. Of a device
     * without a log only the true position is known.
     * @param {Scene} scene @param {number} runMs
     */
    #fillReports({ devices }, runMs) {
        const { report_ms, report_device, report_lon, report_lat, track_lon, track_lat } = this.columns;
        const { device_ids, start_ms, step_ms } = this.header;
        for (let row = 0; row < devices.count; row++) {
            const device = devices.numbers[row];
            const step = this.#firstSteps[device];
            const at = step * device_ids.length + device;
            const isLogged = this.#logged.has(device);
            devices.x[row] = isLogged ? mercatorX(track_lon[at] * E7) : NaN;
            devices.y[row] = isLogged ? mercatorY(track_lat[at] * E7) : NaN;
            devices.reportedMs[row] = start_ms + step * step_ms;
        }
        const count = countUntil(report_ms, runMs);
        for (let i = 0; i < count; i++) {
            const row = devices.rowOf(report_device[i]);
            if (row === undefined) continue;
            devices.x[row] = mercatorX(report_lon[i] * E7);
            devices.y[row] = mercatorY(report_lat[i] * E7);
            devices.reportedMs[row] = start_ms + report_ms[i];
        }
    }

    /** The true position of a device at the last tick. @param {number} device @param {number} runMs */
    positionAt(device, runMs) {
        const at = this.#stepAt(runMs) * this.header.device_ids.length + device;
        const { track_lon, track_lat } = this.columns;
        return track_lon[at] === NOWHERE ? null : { lon: track_lon[at] * E7, lat: track_lat[at] * E7 };
    }

    /** @param {number} object @param {number} runMs */
    isLive(object, runMs) {
        const { object_ms, object_end_ms } = this.columns;
        return object_ms[object] <= runMs && object_end_ms[object] > runMs;
    }

    /** @param {number} object */
    placeOf(object) {
        return { lon: this.columns.object_lon[object] * E7, lat: this.columns.object_lat[object] * E7 };
    }

    /** @param {number} object */
    keywordsOf(object) {
        const { keyword_object, keyword_number } = this.columns;
        const found = [];
        for (let i = countUntil(keyword_object, object - 1); keyword_object[i] === object; i++) {
            found.push(this.header.keywords[keyword_number[i]]);
        }
        return found;
    }

    /** @param {string} id @param {number} runMs @returns {DeviceFigures} */
    deviceFigures(id, runMs) {
        const device = this.header.device_ids.indexOf(id);
        const { report_ms, report_device } = this.columns;
        const { step_ms, period_ms, specs } = this.header;
        const first = this.#firstSteps[device];
        const count = countUntil(report_ms, runMs);
        let reports = 0;
        let lastMs = first * step_ms;
        for (let i = 0; i < count; i++) {
            if (report_device[i] !== device) continue;
            reports++;
            lastMs = report_ms[i];
        }
        return {
            isKnown: device >= 0,
            isLogged: this.#logged.has(device),
            isAttached: runMs >= first * step_ms,
            hasSpec: specs[device] !== undefined,
            reports,
            silentMs: runMs - lastMs,
            moves: this.#movesOf(device, first, this.#stepAt(runMs)) * (step_ms / period_ms),
        };
    }

    /** Return the number of steps after the first at which a device has a position. @param {number} device @param {number} first @param {number} last */
    #movesOf(device, first, last) {
        let moves = 0;
        for (let step = first + 1; step <= last; step++) {
            if (this.columns.track_lon[step * this.header.device_ids.length + device] !== NOWHERE) moves++;
        }
        return moves;
    }
}

/** Read a recorded run. @param {ArrayBuffer} buffer */
export function readRecording(buffer) {
    const { header, columns } = readFile(buffer);
    return new Recording(header, columns);
}
