/** The service area and its projection, with the factors that the server sends. */

import type { Frame as WireFrame } from "../generated/nearcast/v1/geometry_pb.js";
import { StreamError } from "./errors.js";

/** A position on the plane, in metres from the centre of the area. */
export interface Point {
    readonly xM: number;
    readonly yM: number;
}

/** A position in degrees, WGS84. */
export interface Position {
    readonly lon: number;
    readonly lat: number;
}

/** A closed longitude-latitude rectangle in degrees. */
export interface Area {
    readonly lonMin: number;
    readonly latMin: number;
    readonly lonMax: number;
    readonly latMax: number;
}

/** A service area with its projection. */
export class Frame {
    constructor(
        readonly area: Area,
        readonly lon0Deg: number,
        readonly lat0Deg: number,
        readonly xMPerDeg: number,
        readonly yMPerDeg: number,
        /** Length of the area's diagonal, the unit in which scores measure distance. */
        readonly maxdistM: number,
    ) {}

    /** Map degrees to plane metres. Defined everywhere, including outside the area. */
    project(lon: number, lat: number): Point {
        return { xM: (lon - this.lon0Deg) * this.xMPerDeg, yM: (lat - this.lat0Deg) * this.yMPerDeg };
    }

    /** Return whether a position lies in the closed area. */
    covers(lon: number, lat: number): boolean {
        const { lonMin, latMin, lonMax, latMax } = this.area;
        return lonMin <= lon && lon <= lonMax && latMin <= lat && lat <= latMax;
    }
}

/** The frame before the first welcome. */
export const UNKNOWN_FRAME = new Frame({ lonMin: 0, latMin: 0, lonMax: 0, latMax: 0 }, 0, 0, 0, 0, 1);

/** Convert a message to a frame. */
export function frameFrom(message: WireFrame | undefined): Frame {
    const factors = [message?.xMPerDeg, message?.yMPerDeg, message?.maxdistM];
    if (
        message === undefined ||
        !factors.every((one) => one !== undefined && one > 0 && one < Infinity)
    ) {
        throw new StreamError("the server's welcome has no frame");
    }
    const { lonMin, latMin, lonMax, latMax, lon0Deg, lat0Deg, xMPerDeg, yMPerDeg, maxdistM } = message;
    return new Frame({ lonMin, latMin, lonMax, latMax }, lon0Deg, lat0Deg, xMPerDeg, yMPerDeg, maxdistM);
}
