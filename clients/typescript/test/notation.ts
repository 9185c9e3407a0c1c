/** Reads and writes values as the vectors do. See `docs/vectors.md`. */

import type { AreaShape } from "../src/core/areas.js";
import { isPolygon } from "../src/core/areas.js";
import type { Vertex } from "../src/core/orientation.js";
import type { Buffered } from "../src/core/region.js";

/** A value of JSON. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** An object of JSON with fields that a step or a case is known to have. */
export type Fields = { [key: string]: Json };

/** One file of vectors. */
export interface Vectors {
    readonly subject: string;
    readonly relative_error: number;
    readonly cases: readonly Case[];
}

/** What is given, and steps; each step has an operation, its input, and its expected output. */
export interface Case {
    readonly name: string;
    readonly given: Fields;
    readonly steps: readonly Fields[];
}

export function num(value: Json | undefined): number {
    if (value === "Infinity" || value === "-Infinity") return Number(value);
    if (typeof value !== "number") throw new TypeError(`${JSON.stringify(value)} is no double`);
    return value;
}

export function double(value: number): Json {
    return Number.isFinite(value) ? value : String(value);
}

/** Read a whole number of 64 bits as a bigint. */
export function int(value: Json | undefined): bigint {
    return BigInt(text(value));
}

/** Read a time. */
export function ms(value: Json | undefined): number {
    return Number(text(value));
}

export function text(value: Json | undefined): string {
    if (typeof value !== "string") throw new TypeError(`${JSON.stringify(value)} is no text`);
    return value;
}

export function list(value: Json | undefined): Json[] {
    return (value ?? []) as Json[];
}

export function fields(value: Json | undefined): Fields {
    return value as Fields;
}

export function pair(value: Json | undefined): Vertex {
    const [x, y] = list(value);
    return [num(x), num(y)];
}

export function shape(value: Json | undefined): AreaShape {
    const { rectangle, polygon } = fields(value);
    if (polygon !== undefined) return list(polygon).map(pair);
    const [x1M, y1M, x2M, y2M] = list(rectangle).map(num) as [number, number, number, number];
    return { x1M, y1M, x2M, y2M };
}

export function writtenShape(area: AreaShape): Json {
    if (isPolygon(area)) return { polygon: area.map(([x, y]) => [x, y]) };
    return { rectangle: [area.x1M, area.y1M, area.x2M, area.y2M] };
}

/** Read an object of a buffer. */
export function buffered(value: Json): Buffered {
    const entry = fields(value);
    return {
        objectId: int(entry["id"]),
        xM: num(entry["x_m"]),
        yM: num(entry["y_m"]),
        constantM: num(entry["r_m"] ?? 0),
        expiryMs: ms(entry["expiry_ms"]),
        area: entry["area"] === undefined ? undefined : shape(entry["area"]),
    };
}
