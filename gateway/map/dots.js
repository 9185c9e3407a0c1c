/**
 * A picture of many small points, as pixels in an array: a point costs some writes, and a frame one copy.
 *
 * Where points overlap, the more opaque pixel stays, so that a fading point does not cover a new one. The
 * points that are drawn last, devices, cover the others.
 */

/** Pixels of a point: offsets in the picture from its middle, and colours. @typedef {{x: Int8Array, y: Int8Array, rgba: Uint32Array}} Stamp */

export class Dots {
    #image = new ImageData(1, 1);
    #pixels = new Uint32Array(1);
    #width = 1;
    #height = 1;

    /** @param {number} width @param {number} height in pixels of the device */
    resize(width, height) {
        this.#width = Math.max(1, width);
        this.#height = Math.max(1, height);
        this.#image = new ImageData(this.#width, this.#height);
        this.#pixels = new Uint32Array(this.#image.data.buffer);
    }

    clear() {
        this.#pixels.fill(0);
    }

    /**
     * Draw a point; one that reaches beyond the edge is cut off.
     * @param {Stamp} stamp
     * @param {number} x of its middle
     * @param {number} y
     * @param {boolean} covers whether it covers what is there
     */
    draw(stamp, x, y, covers) {
        const [left, top, width, height] = [Math.round(x), Math.round(y), this.#width, this.#height];
        const { x: dx, y: dy, rgba } = stamp;
        for (let i = 0; i < rgba.length; i++) {
            const px = left + dx[i];
            const py = top + dy[i];
            if (px < 0 || py < 0 || px >= width || py >= height) continue;
            const at = py * width + px;
            // The highest byte is the opacity.
            if (covers || rgba[i] >>> 24 > this.#pixels[at] >>> 24) this.#pixels[at] = rgba[i];
        }
    }

    /** Replace what is on a canvas. @param {CanvasRenderingContext2D} context */
    show(context) {
        context.putImageData(this.#image, 0, 0);
    }
}

/**
 * Return the pixels of a small picture.
 * @param {number} size of the picture in pixels of the device
 * @param {number} ratio pixels of the device a pixel of the page
 * @param {(context: CanvasRenderingContext2D) => void} paint draws it around the origin
 * @returns {Stamp}
 */
export function stampOf(size, ratio, paint) {
    const canvas = document.createElement("canvas");
    canvas.width = canvas.height = Math.ceil(size * ratio) + 2;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d", { willReadFrequently: true }));
    context.translate(canvas.width / 2, canvas.width / 2);
    context.scale(ratio, ratio);
    paint(context);
    const pixels = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.width).data.buffer);
    const used = [...pixels.keys()].filter((i) => pixels[i] >>> 24 > 8);
    const middle = canvas.width >> 1;
    return {
        x: Int8Array.from(used, (i) => (i % canvas.width) - middle),
        y: Int8Array.from(used, (i) => Math.floor(i / canvas.width) - middle),
        rgba: Uint32Array.from(used, (i) => pixels[i]),
    };
}
