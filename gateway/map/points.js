/**
 * Draws a scene on one canvas above the base map.
 *
 * Devices and objects are pixels in an array (`dots.js`); no point is an element of the page. Outlines and
 * new reports, of which there are few, are drawn over them. Points outside the view are skipped.
 */

import { colour } from "./colours.js";
import { Dots, stampOf } from "./dots.js";
import { mercatorX, mercatorY, metre } from "./mercator.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").Grid} Grid */
/** @typedef {import("./scene.js").Outline} Outline */
/** @typedef {import("./dots.js").Stamp} Stamp */

/**
 * The part of the world that the canvas shows.
 * @typedef {object} View
 * @property {number} x normalised Mercator of the middle
 * @property {number} y
 * @property {number} scale pixels of the width of the world
 * @property {number} lat latitude of the middle
 */

/** @type {Stamp} */
const EMPTY = { x: new Int8Array(0), y: new Int8Array(0), rgba: new Uint32Array(0) };
/** Degrees of fading: an object is drawn with one of these. */
const FADES = 8;
/** Sizes of points in pixels: the smallest and the largest, which they reach as the view zooms in. */
const OBJECT_PX = { least: 4, most: 9 };
const DEVICE_PX = { least: 7, most: 12 };
/** Zooms between which points grow. */
const GROWING = { from: 11, to: 16 };
/** Opacity of other devices and objects while a device is chosen. */
const DIMMED = 0.4;
const WORLD_PX = 512;
/** How long a report is shown as a ring that grows. */
const RIPPLE_MS = 1200;
const RIPPLE_PX = 14;
/** A device that reported longer ago than this is drawn paler. */
const QUIET_MS = 60_000;
const MARGIN_PX = 20;

export class Points {
    /** Which layers are drawn. */
    layers = { devices: true, objects: true, true: true };
    /** Number of points that the last frame drew. */
    drawn = 0;
    #canvas;
    #context;
    #width = 0;
    #height = 0;
    #ratio = 1;
    #dots = new Dots();
    /** @type {Stamp[]} */
    #objectStamps = [];
    #deviceStamp = EMPTY;
    #quietStamp = EMPTY;
    #trueStamp = EMPTY;
    /** @type {Record<string, string>} */
    #colours = {};
    #objectPx = OBJECT_PX.least;
    #devicePx = DEVICE_PX.least;
    #alpha = 1;

    /** @param {HTMLCanvasElement} canvas */
    constructor(canvas) {
        this.#canvas = canvas;
        this.#context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
        this.resize();
    }

    /** Follow the size of the element. */
    resize() {
        const { clientWidth, clientHeight } = this.#canvas;
        this.#ratio = Math.min(devicePixelRatio || 1, 2);
        this.#width = clientWidth;
        this.#height = clientHeight;
        this.#canvas.width = Math.round(clientWidth * this.#ratio);
        this.#canvas.height = Math.round(clientHeight * this.#ratio);
        this.#dots.resize(this.#canvas.width, this.#canvas.height);
        this.recolour();
    }

    /** Draw the pictures of points again, in the colours of the theme. */
    recolour() {
        for (const name of ["device", "device-quiet", "object", "region", "ink", "surface", "next", "true"]) {
            this.#colours[name] = colour(name);
        }
        this.#objectStamps = Array.from({ length: FADES }, (_, i) => this.#objectStampOf((i + 1) / FADES));
        this.#quietStamp = this.#dotStamp(this.#devicePx, this.#colours["device-quiet"]);
        this.#deviceStamp = this.#dotStamp(this.#devicePx, this.#colours.device);
        this.#trueStamp = this.#dotStamp(this.#devicePx - 1, this.#colours.true);
    }

    /**
     * Draw a frame. O(points).
     * @param {Scene} scene
     * @param {View} view
     * @returns {"moving" | "fading" | ""} the difference of the next frame
     */
    draw(scene, view) {
        const context = this.#context;
        this.drawn = 0;
        this.#size(view, scene.anchor === null ? 1 : DIMMED);
        this.#dots.clear();
        if (this.layers.objects && !scene.objectGrid) this.#drawObjects(scene, view);
        if (this.layers.devices && !scene.deviceGrid) this.#drawDevices(scene, view);
        context.setTransform(1, 0, 0, 1, 0, 0);
        this.#dots.show(context);
        context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
        if (this.layers.objects && scene.objectGrid) this.#drawGrid(scene.objectGrid, view, "object");
        if (this.layers.devices && scene.deviceGrid) this.#drawGrid(scene.deviceGrid, view, "device");
        context.globalAlpha = this.#alpha;
        const ripples = this.layers.devices && !scene.deviceGrid && this.#drawReports(scene, view);
        context.globalAlpha = 1;
        this.#drawOutlines(scene, view);
        this.#drawHeld(scene, view);
        if (ripples) return "moving";
        return scene.objects.count > 0 ? "fading" : "";
    }

    /**
     * Return the row of the device at a place of the canvas; -1 if there is none within some pixels.
     * @param {Scene} scene
     * @param {View} view
     * @param {number} px
     * @param {number} py
     */
    deviceAt(scene, view, px, py) {
        const { devices } = scene;
        let best = -1;
        let least = 12 * 12;
        const shown = [[devices.x, devices.y], ...(this.layers.true ? [[devices.trueX, devices.trueY]] : [])];
        for (const [xs, ys] of shown) {
            for (let row = 0; row < devices.count; row++) {
                const dx = this.#px(xs[row], view) - px;
                const dy = this.#py(ys[row], view) - py;
                // False for NaN: an unknown place.
                if (dx * dx + dy * dy < least) [best, least] = [row, dx * dx + dy * dy];
            }
        }
        return best;
    }

    /** Follow the zoom with the size of points, and dim them. @param {View} view @param {number} alpha */
    #size({ scale }, alpha) {
        const zoom = Math.log2(scale / WORLD_PX);
        const part = Math.min(1, Math.max(0, (zoom - GROWING.from) / (GROWING.to - GROWING.from)));
        const objectPx = Math.round(OBJECT_PX.least + part * (OBJECT_PX.most - OBJECT_PX.least));
        if (objectPx === this.#objectPx && alpha === this.#alpha) return;
        this.#objectPx = objectPx;
        this.#alpha = alpha;
        this.#devicePx = Math.round(DEVICE_PX.least + part * (DEVICE_PX.most - DEVICE_PX.least));
        this.recolour();
    }

    /** @param {number} x @param {View} view */
    #px(x, view) {
        return (x - view.x) * view.scale + this.#width / 2;
    }

    /** @param {number} y @param {View} view */
    #py(y, view) {
        return (y - view.y) * view.scale + this.#height / 2;
    }

    /** @param {Scene} scene @param {View} view */
    #drawObjects(scene, view) {
        const { objects, nowMs } = scene;
        const [left, top] = this.#origin(view);
        const scale = view.scale * this.#ratio;
        for (let row = 0; row < objects.count; row++) {
            const px = objects.x[row] * scale + left;
            const py = objects.y[row] * scale + top;
            if (!this.#isOnCanvas(px, py)) continue;
            const end = objects.expiryMs[row];
            const part = (end - nowMs) / (end - objects.createdMs[row]);
            if (part <= 0) continue;
            const fade = Math.min(FADES - 1, Math.floor(part * FADES));
            this.#dots.draw(this.#objectStamps[fade], px, py, false);
            this.drawn++;
        }
    }

    /** @param {Scene} scene @param {View} view */
    #drawDevices(scene, view) {
        const { devices, nowMs } = scene;
        const [left, top] = this.#origin(view);
        const scale = view.scale * this.#ratio;
        for (let row = 0; row < devices.count; row++) {
            const px = devices.x[row] * scale + left;
            const py = devices.y[row] * scale + top;
            if (!this.#isOnCanvas(px, py)) continue;
            const isQuiet = nowMs - devices.reportedMs[row] >= QUIET_MS;
            this.#dots.draw(isQuiet ? this.#quietStamp : this.#deviceStamp, px, py, true);
            this.drawn++;
        }
        if (!this.layers.true) return;
        for (let row = 0; row < devices.count; row++) {
            const px = devices.trueX[row] * scale + left;
            const py = devices.trueY[row] * scale + top;
            if (this.#isOnCanvas(px, py)) this.#dots.draw(this.#trueStamp, px, py, true);
        }
    }

    /** Pixels of the canvas of the world's north-western corner. @param {View} view */
    #origin(view) {
        const [width, height] = [this.#canvas.width, this.#canvas.height];
        const scale = view.scale * this.#ratio;
        return [width / 2 - view.x * scale, height / 2 - view.y * scale];
    }

    /** @param {number} px @param {number} py pixels of the canvas */
    #isOnCanvas(px, py) {
        const margin = MARGIN_PX * this.#ratio;
        return px > -margin && py > -margin && px < this.#canvas.width + margin && py < this.#canvas.height + margin;
    }

    /** Reports of the last second, and discs of private devices. @param {Scene} scene @param {View} view */
    #drawReports(scene, view) {
        const { devices, nowMs } = scene;
        let ripples = false;
        for (let row = 0; row < devices.count; row++) {
            const ageMs = nowMs - devices.reportedMs[row];
            const isNew = ageMs >= 0 && ageMs < RIPPLE_MS;
            if (!isNew && devices.radiusM[row] === 0) continue;
            const [px, py] = [this.#px(devices.x[row], view), this.#py(devices.y[row], view)];
            if (!this.#isShown(px, py)) continue;
            if (devices.radiusM[row] > 0) this.#drawDisc(px, py, devices.radiusM[row], view);
            if (isNew) this.#drawRipple(px, py, ageMs / RIPPLE_MS);
            ripples ||= isNew;
        }
        if (this.layers.true) this.#drawTrue(scene, view);
        return ripples;
    }

    /** Lines from true positions to the last reports of their devices. @param {Scene} scene @param {View} view */
    #drawTrue(scene, view) {
        const { devices } = scene;
        const context = this.#context;
        context.strokeStyle = this.#colours.true;
        context.globalAlpha = 0.5 * this.#alpha;
        context.lineWidth = 1.2;
        context.beginPath();
        for (let row = 0; row < devices.count; row++) {
            const [px, py] = [this.#px(devices.trueX[row], view), this.#py(devices.trueY[row], view)];
            if (!this.#isShown(px, py) || Number.isNaN(devices.x[row])) continue; // without a log it has no report
            context.moveTo(this.#px(devices.x[row], view), this.#py(devices.y[row], view));
            context.lineTo(px, py);
        }
        context.stroke();
        context.globalAlpha = this.#alpha;
        const row = devices.ids.indexOf(scene.chosen);
        if (row < 0 || Number.isNaN(devices.trueX[row])) return;
        this.#drawRing(this.#px(devices.trueX[row], view), this.#py(devices.trueY[row], view));
    }

    /** @param {number} px @param {number} py */
    #isShown(px, py) {
        return (
            px > -MARGIN_PX && py > -MARGIN_PX && px < this.#width + MARGIN_PX && py < this.#height + MARGIN_PX
        );
    }

    /** @param {number} px @param {number} py @param {number} part */
    #drawRipple(px, py, part) {
        const context = this.#context;
        context.globalAlpha = 0.7 * (1 - part) * this.#alpha;
        context.strokeStyle = this.#colours.device;
        context.lineWidth = 1.5;
        context.beginPath();
        context.arc(px, py, this.#devicePx / 2 + part * RIPPLE_PX, 0, 2 * Math.PI);
        context.stroke();
        context.globalAlpha = this.#alpha;
    }

    /** Mark the true position of the chosen device. @param {number} px @param {number} py */
    #drawRing(px, py) {
        const context = this.#context;
        context.globalAlpha = 1;
        context.strokeStyle = this.#colours.true;
        context.lineWidth = 2.5;
        context.beginPath();
        context.arc(px, py, this.#devicePx, 0, 2 * Math.PI);
        context.stroke();
        context.globalAlpha = this.#alpha;
    }

    /** @param {number} px @param {number} py @param {number} radiusM @param {View} view */
    #drawDisc(px, py, radiusM, view) {
        const context = this.#context;
        context.globalAlpha = 0.12 * this.#alpha;
        context.fillStyle = this.#colours.device;
        context.beginPath();
        context.arc(px, py, radiusM * metre(view.lat) * view.scale, 0, 2 * Math.PI);
        context.fill();
        context.globalAlpha = this.#alpha;
    }

    /** Safe regions and ranges of the chosen device. @param {Scene} scene @param {View} view */
    #drawOutlines(scene, view) {
        const context = this.#context;
        for (const outline of scene.regions) {
            this.#trace(outline, view);
            context.globalAlpha = 0.14;
            context.fillStyle = this.#colours.region;
            context.fill();
            context.globalAlpha = 1;
            context.strokeStyle = this.#colours.region;
            context.lineWidth = 2;
            context.stroke();
        }
        context.setLineDash([6, 5]);
        for (const outline of scene.ranges) {
            this.#trace(outline, view);
            context.strokeStyle = this.#colours.ink;
            context.lineWidth = 1.2;
            context.stroke();
        }
        context.setLineDash([]);
    }

    /** @param {Outline} outline @param {View} view */
    #trace(outline, view) {
        this.#context.beginPath();
        for (let i = 0; i < outline.length; i += 2) {
            this.#context.lineTo(this.#px(outline[i], view), this.#py(outline[i + 1], view));
        }
        this.#context.closePath();
    }

    /** The objects of the chosen device, with their ranks; its anchor. @param {Scene} scene @param {View} view */
    #drawHeld(scene, view) {
        const context = this.#context;
        const { anchor, here } = scene;
        if (here !== null) this.#drawSpokes(scene, here, view);
        context.font = "600 11px system-ui, sans-serif";
        context.textAlign = "center";
        context.textBaseline = "middle";
        for (const one of scene.held.toReversed()) {
            const [px, py] = [this.#px(one.x, view), this.#py(one.y, view)];
            const isResult = one.kind === "result";
            context.beginPath();
            context.arc(px, py, isResult ? 10 : 6, 0, 2 * Math.PI);
            context.fillStyle = isResult ? this.#colours.object : this.#colours.surface;
            context.fill();
            context.strokeStyle = one.kind === "next" ? this.#colours.next : this.#colours.object;
            context.lineWidth = 2;
            context.stroke();
            context.fillStyle = "#fff";
            if (isResult) context.fillText(String(one.rank), px, py + 0.5);
        }
        if (anchor !== null) this.#drawAnchor(this.#px(anchor.x, view), this.#py(anchor.y, view));
    }

    /** @param {Scene} scene @param {{x: number, y: number}} here @param {View} view */
    #drawSpokes(scene, here, view) {
        const context = this.#context;
        context.strokeStyle = this.#colours.object;
        context.lineWidth = 1.2;
        context.globalAlpha = 0.7;
        context.beginPath();
        for (const one of scene.held) {
            if (one.kind !== "result") continue;
            context.moveTo(this.#px(here.x, view), this.#py(here.y, view));
            context.lineTo(this.#px(one.x, view), this.#py(one.y, view));
        }
        context.stroke();
        context.globalAlpha = 1;
    }

    /** @param {number} px @param {number} py */
    #drawAnchor(px, py) {
        const context = this.#context;
        context.beginPath();
        context.arc(px, py, 8, 0, 2 * Math.PI);
        context.fillStyle = this.#colours.region;
        context.fill();
        context.strokeStyle = this.#colours.surface;
        context.lineWidth = 2.5;
        context.stroke();
    }

    /** Density, as a picture of one pixel a cell that is enlarged. @param {Grid} grid @param {View} view @param {string} name */
    #drawGrid(grid, view, name) {
        const [west, south, east, north] = grid.bounds;
        const [left, right] = [this.#px(mercatorX(west), view), this.#px(mercatorX(east), view)];
        const [top, bottom] = [this.#py(mercatorY(north), view), this.#py(mercatorY(south), view)];
        this.#context.imageSmoothingEnabled = true;
        this.#context.drawImage(densityPicture(grid, this.#colours[name]), left, top, right - left, bottom - top);
    }

    /** @param {number} part of the lifetime that is left */
    #objectStampOf(part) {
        const half = this.#objectPx / 2;
        return stampOf(this.#objectPx, this.#ratio, (context) => {
            context.globalAlpha = (0.15 + 0.7 * part) * this.#alpha;
            context.fillStyle = this.#colours.object;
            context.beginPath();
            for (const [x, y] of [[0, -half], [half, 0], [0, half], [-half, 0]]) context.lineTo(x, y);
            context.fill();
        });
    }

    /** @param {number} size @param {string} fill */
    #dotStamp(size, fill) {
        return stampOf(size, this.#ratio, (context) => {
            context.globalAlpha = this.#alpha;
            context.beginPath();
            context.arc(0, 0, size / 2 - 0.5, 0, 2 * Math.PI);
            context.fillStyle = fill;
            context.fill();
            context.strokeStyle = this.#colours.surface;
            context.lineWidth = 1;
            context.stroke();
        });
    }
}

/** @param {Grid} grid @param {string} fill */
function densityPicture({ columns, rows, counts }, fill) {
    const picture = document.createElement("canvas");
    picture.width = columns;
    picture.height = rows;
    const context = /** @type {CanvasRenderingContext2D} */ (picture.getContext("2d"));
    let most = 1;
    for (let i = 0; i < counts.length; i++) most = Math.max(most, counts[i]);
    context.fillStyle = fill;
    for (let row = 0; row < rows; row++) {
        for (let column = 0; column < columns; column++) {
            const count = counts[row * columns + column];
            if (count === 0) continue;
            context.globalAlpha = 0.12 + 0.78 * (Math.log1p(count) / Math.log1p(most));
            context.fillRect(column, rows - 1 - row, 1, 1);
        }
    }
    return picture;
}
