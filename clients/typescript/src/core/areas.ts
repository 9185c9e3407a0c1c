/**
 * Distances to the areas of objects on the plane, and whether they meet boxes. See
 * `safe_region/geometry/areas.py`.
 */

import type { ObjectArea as WireArea } from "../generated/nearcast/v1/objects_pb.js";
import { invalid } from "./errors.js";
import type { Area, Frame, Position } from "./frame.js";
import { finite } from "./numbers.js";
import { turn } from "./orientation.js";
import type { Vertex } from "./orientation.js";

/** A rectangle in degrees, edges included. */
export interface Bounds extends Area {
    readonly kind: "bounds";
}

/** A polygon in degrees, edges included; edges are straight on the server's plane. */
export interface Polygon {
    readonly kind: "polygon";
    /** Its corners, at least three. The last one is joined to the first, which need not be repeated. */
    readonly outer: readonly Position[];
    /** Corners of each hole. Areas of objects have none. */
    readonly holes?: readonly (readonly Position[])[];
}

/** The region of an object that is more than a point. */
export type ObjectArea = Bounds | Polygon;

/** A rectangle on the plane. */
export interface Box {
    readonly x1M: number;
    readonly y1M: number;
    readonly x2M: number;
    readonly y2M: number;
}

/** An area on the plane: a rectangle, or the corners of a ring. */
export type AreaShape = Box | readonly Vertex[];

/** Convert a message to the area of an object; undefined if its kind is unknown here. */
export function areaFrom(message: WireArea): ObjectArea | undefined {
    switch (message.shape.case) {
        case "rectangle": {
            const { lonMin, latMin, lonMax, latMax } = message.shape.value;
            return { kind: "bounds", lonMin, latMin, lonMax, latMax };
        }
        case "polygon":
            return {
                kind: "polygon",
                outer: message.shape.value.vertices.map(({ lon, lat }) => ({ lon, lat })),
            };
        default:
            return undefined;
    }
}

/** Convert a position to the fields of a message; `field` is its name in errors. */
export function writtenPosition(position: Position, field: string): Position {
    if (Array.isArray(position)) throw invalid(field, position, "an object: { lon, lat }");
    return { lon: finite(position?.lon, `${field}.lon`), lat: finite(position?.lat, `${field}.lat`) };
}

/** Convert the corners of a ring to the fields of a message; `field` is its name in errors. */
export function writtenRing(ring: readonly Position[], field: string): { vertices: Position[] } {
    if (!Array.isArray(ring)) throw invalid(field, ring, "an array of { lon, lat }");
    return { vertices: opened(ring.map((one: Position, i) => writtenPosition(one, `${field}[${i}]`))) };
}

/** Convert a rectangle to the fields of a message; `field` is its name in errors. */
export function writtenBounds({ lonMin, latMin, lonMax, latMax }: Bounds, field: string): Area {
    const bounds = { lonMin, latMin, lonMax, latMax };
    for (const [name, degrees] of Object.entries(bounds)) finite(degrees, `${field}.${name}`);
    return bounds;
}

/** Return the corners of a ring, without a last one that repeats the first, as in GeoJSON. */
export function opened(ring: readonly Position[]): Position[] {
    const [first, last] = [ring[0], ring[ring.length - 1]];
    const isClosed = ring.length > 1 && first?.lon === last?.lon && first?.lat === last?.lat;
    return ring.slice(0, isClosed ? -1 : undefined);
}

/** Return an area on the plane. */
export function planeArea(area: ObjectArea, frame: Frame): AreaShape {
    if (area.kind === "bounds") {
        const low = frame.project(area.lonMin, area.latMin);
        const high = frame.project(area.lonMax, area.latMax);
        return { x1M: low.xM, y1M: low.yM, x2M: high.xM, y2M: high.yM };
    }
    return area.outer.map(({ lon, lat }) => {
        const point = frame.project(lon, lat);
        return [point.xM, point.yM];
    });
}

/** Return whether an area on the plane is a polygon. */
export function isPolygon(area: AreaShape): area is readonly Vertex[] {
    return Array.isArray(area);
}

/** Return the distance from a point to an area in metres; 0 within it. */
export function areaDistance(area: AreaShape, xM: number, yM: number): number {
    if (!isPolygon(area)) {
        const dx = Math.max(area.x1M - xM, xM - area.x2M, 0);
        const dy = Math.max(area.y1M - yM, yM - area.y2M, 0);
        return Math.sqrt(dx * dx + dy * dy);
    }
    if (isWithin(area, xM, yM)) return 0;
    return edges(area).reduce(
        (least, [a, b]) => Math.min(least, segmentDistance(xM, yM, a, b)),
        Infinity,
    );
}

/** Return the largest distance from a point to a point of an area in metres. */
export function areaExtent(area: AreaShape, xM: number, yM: number): number {
    if (!isPolygon(area)) {
        const dx = Math.max(Math.abs(area.x1M - xM), Math.abs(area.x2M - xM));
        const dy = Math.max(Math.abs(area.y1M - yM), Math.abs(area.y2M - yM));
        return Math.sqrt(dx * dx + dy * dy);
    }
    return Math.sqrt(Math.max(...area.map(([ax, ay]) => (ax - xM) * (ax - xM) + (ay - yM) * (ay - yM))));
}

/** Return whether an area and a rectangle have a point in common, exactly. */
export function areaMeetsBox(area: AreaShape, box: Box): boolean {
    if (!isPolygon(area)) return boxesMeet([area.x1M, area.y1M], [area.x2M, area.y2M], box);
    // If no edge reaches the rectangle, all of it is inside or all is outside, and so is any corner.
    return edges(area).some(([a, b]) => meetsBox(a, b, box)) || isWithin(area, box.x1M, box.y1M);
}

function edges(ring: readonly Vertex[]): [Vertex, Vertex][] {
    return ring.map((vertex, i) => [ring[i === 0 ? ring.length - 1 : i - 1] as Vertex, vertex]);
}

function boxesMeet(one: Vertex, other: Vertex, box: Box): boolean {
    return (
        Math.min(one[0], other[0]) <= box.x2M &&
        Math.max(one[0], other[0]) >= box.x1M &&
        Math.min(one[1], other[1]) <= box.y2M &&
        Math.max(one[1], other[1]) >= box.y1M
    );
}

/** They meet if their boxes do and not all corners lie strictly on one side of the segment's line. */
function meetsBox(a: Vertex, b: Vertex, box: Box): boolean {
    if (!boxesMeet(a, b, box)) return false;
    const { x1M, y1M, x2M, y2M } = box;
    const corners: Vertex[] = [
        [x1M, y1M],
        [x2M, y1M],
        [x2M, y2M],
        [x1M, y2M],
    ];
    const turns = corners.map((corner) => turn(a, b, corner));
    return Math.min(...turns) <= 0 && Math.max(...turns) >= 0;
}

function segmentDistance(xM: number, yM: number, a: Vertex, b: Vertex): number {
    const [ax, ay] = a;
    const [bx, by] = b;
    const alongX = bx - ax;
    const alongY = by - ay;
    const square = alongX * alongX + alongY * alongY;
    const share = square > 0 ? ((xM - ax) * alongX + (yM - ay) * alongY) / square : 0;
    let nearest = a;
    if (share >= 1) nearest = b;
    else if (share > 0) nearest = [ax + share * alongX, ay + share * alongY];
    const dx = xM - nearest[0];
    const dy = yM - nearest[1];
    return Math.sqrt(dx * dx + dy * dy);
}

/** Return whether a point lies inside a ring or on an edge, by the crossings of a ray to the east. */
function isWithin(ring: readonly Vertex[], xM: number, yM: number): boolean {
    let isInside = false;
    for (const [a, b] of edges(ring)) {
        if (b[0] === xM && b[1] === yM) return true;
        if (a[1] > yM !== b[1] > yM) {
            if (xM < Math.min(a[0], b[0])) {
                isInside = !isInside;
            } else if (xM <= Math.max(a[0], b[0])) {
                const side = turn(a, b, [xM, yM]);
                if (side === 0) return true;
                if (side > 0 === b[1] > a[1]) isInside = !isInside;
            }
        } else if (
            a[1] === b[1] &&
            b[1] === yM &&
            Math.min(a[0], b[0]) <= xM &&
            xM <= Math.max(a[0], b[0])
        ) {
            return true;
        }
    }
    return isInside;
}
