/**
 * The stream of a server's state (`ControlService.Watch`) over a WebSocket of the gateway.
 *
 * The server clips and thins to the view. A frame has the rows that have changed, which are applied to
 * the scene. After a break the stream is opened again, with waits that double.
 */

import { storedToken } from "./address.js";
import { GRID, ROWS_MAX } from "./scene.js";
import { decodeWatchFrame, encodeWatchRequest } from "./vendor/nearcast.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./vendor/nearcast.js").WatchFrame} WatchFrame */
/** @typedef {[number, number, number, number]} Bounds */

/**
 * The view, the filter and the device that are watched.
 * @typedef {object} Wanted
 * @property {Bounds} view
 * @property {string} keyword
 * @property {string} deviceId
 */

const SUBPROTOCOL = "nearcast.v1";
/** Characters that a subprotocol may have; other tokens go into the first text frame. */
const SUBPROTOCOL_TOKEN = /^[\w!#$%&'*+.^`|~-]+$/u;
const E7 = 1e-7;
const INTERVAL_MS = 1000;
const POLLING_MS = 1000;
const WAIT_MS = 500;
const WAIT_MS_MAX = 8000;
/** Time of the server is extrapolated for at most this long: a virtual clock stands still between ticks. */
const AHEAD_MS_MAX = 1500;

export class Watch {
    /** Called with each frame after the scene has changed. @type {(frame: WatchFrame) => void} */
    onFrame = () => {};
    /** Called when the connection changes. @type {(state: "waiting" | "live" | "failed" | "token", text: string) => void} */
    onState = () => {};
    #scene;
    /** @type {WebSocket | null} */
    #socket = null;
    /** @type {Wanted | null} */
    #wanted = null;
    /** The views of requests, the first is number 1. @type {Bounds[]} */
    #views = [];
    #waitMs = WAIT_MS;
    /** The reason for the end of the stream, if the gateway gave one. */
    #reason = "";
    #timer = 0;
    #serverMs = 0;
    #arrivedMs = 0;

    /** @param {Scene} scene */
    constructor(scene) {
        this.#scene = scene;
    }

    /** Watch something else, and connect if there is no connection. @param {Wanted} wanted */
    want(wanted) {
        this.#wanted = wanted;
        if (this.#socket === null) this.#open();
        else if (this.#socket.readyState === WebSocket.OPEN) this.#send(wanted);
    }

    /** Close the connection until something is watched again. */
    stop() {
        clearTimeout(this.#timer);
        const socket = this.#socket;
        this.#socket = null;
        socket?.close(1000);
    }

    /** Time of the server now, as far as it is known. */
    nowMs() {
        if (this.#serverMs === 0) return 0;
        return this.#serverMs + Math.min(performance.now() - this.#arrivedMs, AHEAD_MS_MAX);
    }

    #open() {
        clearTimeout(this.#timer);
        const address = new URL("../v1/watch", import.meta.url);
        address.protocol = address.protocol.replace("http", "ws");
        const token = storedToken();
        const isProtocol = token !== "" && SUBPROTOCOL_TOKEN.test(token);
        const protocols = isProtocol ? [SUBPROTOCOL, `bearer.${token}`] : [SUBPROTOCOL];
        const socket = new WebSocket(address, protocols);
        socket.binaryType = "arraybuffer";
        this.#socket = socket;
        this.#views = [];
        socket.addEventListener("open", () => {
            if (token !== "" && !isProtocol) socket.send(token);
            if (this.#wanted !== null) this.#send(this.#wanted);
        });
        socket.addEventListener("message", ({ data }) => this.#receive(socket, data));
        socket.addEventListener("close", () => this.#closed(socket));
    }

    /** @param {WebSocket} socket @param {ArrayBuffer} data */
    #receive(socket, data) {
        if (socket !== this.#socket) return;
        const frame = decodeWatchFrame(new Uint8Array(data));
        const error = frame.goAway?.error;
        if (error !== undefined) {
            const isToken = error.code === 16 || error.code === 7;
            this.#reason = error.message;
            this.onState(isToken ? "token" : "failed", error.message);
            if (isToken) this.stop();
            return;
        }
        this.#waitMs = WAIT_MS;
        this.#reason = "";
        this.#serverMs = Number(frame.timeMs);
        this.#arrivedMs = performance.now();
        this.#scene.nowMs = this.#serverMs;
        this.#apply(frame);
        this.onState("live", "live");
        this.onFrame(frame);
    }

    /** @param {WebSocket} socket */
    #closed(socket) {
        if (socket !== this.#socket) return;
        this.#socket = null;
        this.onState("failed", this.#reason || "no connection, trying again");
        this.#timer = setTimeout(() => this.#open(), this.#waitMs * (0.5 + Math.random()));
        this.#waitMs = Math.min(2 * this.#waitMs, WAIT_MS_MAX);
    }

    /** @param {Wanted} wanted */
    #send({ view, keyword, deviceId }) {
        const [lonMin, latMin, lonMax, latMax] = view;
        this.#views.push(view);
        const request = encodeWatchRequest({
            view: { lonMin, latMin, lonMax, latMax },
            intervalMs: INTERVAL_MS,
            devicesMax: ROWS_MAX.devices,
            objectsMax: ROWS_MAX.objects,
            gridColumns: GRID.columns,
            gridRows: GRID.rows,
            pollingMs: POLLING_MS,
            keyword,
            deviceId,
        });
        this.#socket?.send(request);
    }

    /** Change the scene. O(rows of the frame). @param {WatchFrame} frame */
    #apply({ reset, devices, objects, requestNumber }) {
        const { scene, bounds } = { scene: this.#scene, bounds: this.#views[Number(requestNumber) - 1] };
        if (reset) {
            scene.devices.clear();
            scene.objects.clear();
        }
        if (devices !== undefined) {
            for (const number of devices.removedNumbers) scene.devices.remove(number);
            devices.numbers.forEach((number, i) => {
                const [lon, lat] = [devices.lonE7[i] * E7, devices.latE7[i] * E7];
                const reportedMs = this.#serverMs - devices.ageMs[i];
                scene.devices.report(number, devices.ids[i], lon, lat, reportedMs, devices.marginM[i]);
            });
            scene.deviceGrid = gridOf(devices.density, bounds);
        }
        if (objects !== undefined) {
            for (const id of objects.removedIds) scene.objects.remove(Number(id));
            objects.ids.forEach((id, i) => {
                const [lon, lat] = [objects.lonE7[i] * E7, objects.latE7[i] * E7];
                const [born, ends] = [this.#serverMs - objects.ageMs[i], this.#serverMs + objects.leftMs[i]];
                scene.objects.add(Number(id), lon, lat, born, ends);
            });
            scene.objectGrid = gridOf(objects.density, bounds);
        }
    }
}

/** @param {{columns: number, rows: number, counts: number[]} | undefined} density @param {Bounds | undefined} bounds */
function gridOf(density, bounds) {
    if (density === undefined || bounds === undefined || density.counts.length === 0) return null;
    return { ...density, bounds };
}
