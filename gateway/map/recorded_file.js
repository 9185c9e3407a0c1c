/**
 * The file of a recorded run: a header, and columns of numbers.
 *
 * It is eight bytes, the length of the header, the header as JSON, then the columns; see
 * simulator/recorded_map, which writes it. Positions are in units of 1e-7 degrees.
 */

const MAGIC = "NCRUN";
const VERSION = "002";
export const E7 = 1e-7;
/** Stands for a device without a position at a step. */
export const NOWHERE = -(2 ** 31);
/** Stands for no object. */
export const NO_OBJECT = 2 ** 32 - 1;
const TYPES = /** @type {const} */ ({ int32: Int32Array, uint32: Uint32Array, uint8: Uint8Array, float32: Float32Array });

/**
 * @typedef {object} Header
 * @property {string} name
 * @property {[number, number, number, number]} area
 * @property {import("./region.js").Plane} plane
 * @property {number} start_ms
 * @property {number} period_ms time between two positions of a device
 * @property {number} step_ms time between two positions of the file
 * @property {number} steps
 * @property {string[]} device_ids
 * @property {number[]} logged numbers of devices with reports; of a run that was not replayed, none
 * @property {Record<number, any>} specs recorded subscription by number of a device
 * @property {Record<number, string>} object_keys by number, of objects that devices held
 * @property {string[]} road_classes
 * @property {string[]} keywords
 * @property {number[][][]} water rings of longitudes and latitudes
 * @property {Record<string, {type: keyof typeof TYPES, offset: string, length: number}>} columns
 */

/** @typedef {Record<string, Int32Array<ArrayBuffer> | Uint32Array<ArrayBuffer> | Uint8Array<ArrayBuffer> | Float32Array<ArrayBuffer>>} Columns */

/**
 * Read the header and the columns of a file.
 * @param {ArrayBuffer} buffer
 * @returns {{header: Header, columns: Columns}}
 */
export function readFile(buffer) {
    const magic = new TextDecoder().decode(new Uint8Array(buffer, 0, Math.min(8, buffer.byteLength)));
    if (!magic.startsWith(MAGIC)) throw new Error("The file is no recorded run.");
    if (magic !== MAGIC + VERSION) {
        throw new Error("The recorded run is of another version: write it again with nearcast replay --report.");
    }
    const length = new DataView(buffer).getUint32(8, true);
    /** @type {Header} */
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 12, length)));
    /** @type {Columns} */
    const columns = {};
    for (const [name, column] of Object.entries(header.columns)) {
        columns[name] = new TYPES[column.type](buffer, Number(column.offset), column.length);
    }
    return { header, columns };
}

/** Return the number of entries of a sorted column that are not after a value. O(log n). @param {ArrayLike<number>} column @param {number} value */
export function countUntil(column, value) {
    let [low, high] = [0, column.length];
    while (low < high) {
        const middle = (low + high) >> 1;
        if (column[middle] <= value) low = middle + 1;
        else high = middle;
    }
    return low;
}
