/**
 * Draws a scene on one canvas above the base map.
 *
 * A point is a copy of a small picture that is drawn once for each theme, so a frame costs one copy a
 * point; there is no element of the page a point. Points outside the view are skipped.
 */

import { colour } from "./colours.js";
import { mercatorX, mercatorY, metre } from "./mercator.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").Grid} Grid */
/** @typedef {import("./scene.js").Outline} Outline */

/**
 * What the canvas shows of the world.
 * @typedef {object} View
 * @property {number} x normalised Mercator of the middle
 * @property {number} y
 * @property {number} scale pixels of the width of the world
 * @property {number} lat latitude of the middle
 */

/** Degrees of fading: an object is drawn with one of these. */
const FADES = 8;
/** Sizes of points in pixels: the smallest and the largest, which they reach as the view zooms in. */
const OBJECT_PX = { least: 4, most: 9 };
const DEVICE_PX = { least: 7, most: 12 };
/** Zooms between which points grow. */
const GROWING = { from: 11, to: 16 };
/** Opacity of what does not concern the chosen device. */
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
    /** @type {HTMLCanvasElement[]} */
    #objectSprites = [];
    /** @type {HTMLCanvasElement[]} */
    #deviceSprites = [];
    #trueSprite = document.createElement("canvas");
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
        this.recolour();
    }

    /** Draw the pictures of points again, in the colours of the theme. */
    recolour() {
        for (const name of ["device", "device-quiet", "object", "region", "ink", "surface", "next", "true"]) {
            this.#colours[name] = colour(name);
        }
        this.#objectSprites = Array.from({ length: FADES }, (_, i) => this.#objectSprite((i + 1) / FADES));
        this.#deviceSprites = [
            this.#dot(this.#devicePx, this.#colours["device-quiet"]),
            this.#dot(this.#devicePx, this.#colours.device),
        ];
        this.#trueSprite = this.#dot(this.#devicePx - 1, this.#colours.true);
    }

    /**
     * Draw a frame. O(points).
     * @param {Scene} scene
     * @param {View} view
     * @returns {"moving" | "fading" | ""} what differs in the next frame
     */
    draw(scene, view) {
        const context = this.#context;
        this.#size(view);
        context.setTransform(this.#ratio, 0, 0, this.#ratio, 0, 0);
        context.clearRect(0, 0, this.#width, this.#height);
        this.drawn = 0;
        if (this.layers.objects && scene.objectGrid) this.#drawGrid(scene.objectGrid, view, "object");
        if (this.layers.devices && scene.deviceGrid) this.#drawGrid(scene.deviceGrid, view, "device");
        this.#drawOutlines(scene, view);
        context.globalAlpha = this.#alpha = scene.anchor === null ? 1 : DIMMED;
        if (this.layers.objects && !scene.objectGrid) this.#drawObjects(scene, view);
        const ripples = this.layers.devices && !scene.deviceGrid && this.#drawDevices(scene, view);
        context.globalAlpha = 1;
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
        for (let row = 0; row < devices.count; row++) {
            const dx = this.#px(devices.x[row], view) - px;
            const dy = this.#py(devices.y[row], view) - py;
            if (dx * dx + dy * dy < least) [best, least] = [row, dx * dx + dy * dy];
        }
        return best;
    }

    /** Follow the zoom with the size of points. @param {View} view */
    #size({ scale }) {
        const zoom = Math.log2(scale / WORLD_PX);
        const part = Math.min(1, Math.max(0, (zoom - GROWING.from) / (GROWING.to - GROWING.from)));
        const objectPx = Math.round(OBJECT_PX.least + part * (OBJECT_PX.most - OBJECT_PX.least));
        if (objectPx === this.#objectPx) return;
        this.#objectPx = objectPx;
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
        const [right, bottom] = [this.#width + MARGIN_PX, this.#height + MARGIN_PX];
        const [left, top] = [this.#width / 2 - view.x * view.scale, this.#height / 2 - view.y * view.scale];
        const size = this.#objectPx;
        const half = size / 2;
        for (let row = 0; row < objects.count; row++) {
            const px = objects.x[row] * view.scale + left;
            const py = objects.y[row] * view.scale + top;
            if (px < -MARGIN_PX || py < -MARGIN_PX || px > right || py > bottom) continue;
            const created = objects.createdMs[row];
            const part = (objects.expiryMs[row] - nowMs) / (objects.expiryMs[row] - created);
            if (part <= 0) continue;
            const fade = Math.min(FADES - 1, Math.floor(part * FADES));
            this.#context.drawImage(this.#objectSprites[fade], px - half, py - half, size, size);
            this.drawn++;
        }
    }

    /** @param {Scene} scene @param {View} view */
    #drawDevices(scene, view) {
        const { devices, nowMs } = scene;
        const size = this.#devicePx;
        const half = size / 2;
        let ripples = false;
        for (let row = 0; row < devices.count; row++) {
            const px = this.#px(devices.x[row], view);
            const py = this.#py(devices.y[row], view);
            if (!this.#isShown(px, py)) continue;
            const ageMs = nowMs - devices.reportedMs[row];
            if (devices.radiusM[row] > 0) this.#drawDisc(px, py, devices.radiusM[row], view);
            if (ageMs >= 0 && ageMs < RIPPLE_MS) {
                this.#drawRipple(px, py, ageMs / RIPPLE_MS);
                ripples = true;
            }
            const sprite = this.#deviceSprites[ageMs < QUIET_MS ? 1 : 0];
            this.#context.drawImage(sprite, px - half, py - half, size, size);
            this.drawn++;
        }
        if (this.layers.true) this.#drawTrue(scene, view);
        return ripples;
    }

    /** True positions, each joined to the last report of its device. @param {Scene} scene @param {View} view */
    #drawTrue(scene, view) {
        const { devices } = scene;
        const context = this.#context;
        context.strokeStyle = this.#colours.true;
        context.globalAlpha = 0.5 * this.#alpha;
        context.lineWidth = 1.2;
        context.beginPath();
        for (let row = 0; row < devices.count; row++) {
            const [px, py] = [this.#px(devices.trueX[row], view), this.#py(devices.trueY[row], view)];
            if (!this.#isShown(px, py)) continue;
            context.moveTo(this.#px(devices.x[row], view), this.#py(devices.y[row], view));
            context.lineTo(px, py);
        }
        context.stroke();
        context.globalAlpha = this.#alpha;
        const size = this.#devicePx - 1;
        for (let row = 0; row < devices.count; row++) {
            const [px, py] = [this.#px(devices.trueX[row], view), this.#py(devices.trueY[row], view)];
            if (!this.#isShown(px, py)) continue;
            context.drawImage(this.#trueSprite, px - size / 2, py - size / 2, size, size);
            if (devices.ids[row] === scene.chosen) this.#drawRing(px, py);
        }
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
        const { anchor } = scene;
        if (anchor !== null) this.#drawSpokes(scene, anchor, view);
        context.font = "600 11px system-ui, sans-serif";
        context.textAlign = "center";
        context.textBaseline = "middle";
        for (const one of scene.held) {
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

    /** @param {Scene} scene @param {{x: number, y: number}} anchor @param {View} view */
    #drawSpokes(scene, anchor, view) {
        const context = this.#context;
        context.strokeStyle = this.#colours.object;
        context.lineWidth = 1.2;
        context.globalAlpha = 0.7;
        context.beginPath();
        for (const one of scene.held) {
            if (one.kind !== "result") continue;
            context.moveTo(this.#px(anchor.x, view), this.#py(anchor.y, view));
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

    /** @param {number} part */
    #objectSprite(part) {
        const sprite = this.#sprite(this.#objectPx);
        const context = /** @type {CanvasRenderingContext2D} */ (sprite.getContext("2d"));
        context.globalAlpha = 0.15 + 0.7 * part;
        context.fillStyle = this.#colours.object;
        const [half, edge] = [this.#objectPx / 2, this.#objectPx - 0.5];
        context.beginPath();
        for (const [x, y] of [[half, 0.5], [edge, half], [half, edge], [0.5, half]]) context.lineTo(x, y);
        context.fill();
        return sprite;
    }

    /** @param {number} size @param {string} fill */
    #dot(size, fill) {
        const sprite = this.#sprite(size);
        const context = /** @type {CanvasRenderingContext2D} */ (sprite.getContext("2d"));
        context.beginPath();
        context.arc(size / 2, size / 2, size / 2 - 1, 0, 2 * Math.PI);
        context.fillStyle = fill;
        context.fill();
        context.strokeStyle = this.#colours.surface;
        context.lineWidth = 1;
        context.stroke();
        return sprite;
    }

    /** @param {number} size */
    #sprite(size) {
        const sprite = document.createElement("canvas");
        sprite.width = sprite.height = Math.ceil(size * this.#ratio);
        sprite.getContext("2d")?.scale(this.#ratio, this.#ratio);
        return sprite;
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
