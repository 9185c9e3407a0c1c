/**
 * Circles that a phone monitors while its app sleeps. See `nearcast/protocol/os_regions.py`, which has the
 * proof.
 */

import { areaExtent } from "./areas.js";
import { invalid } from "./errors.js";
import type { Frame } from "./frame.js";
import { groundExtentM, groundRadiusM } from "./ground.js";
import type { LiveObject, OsRegion, OsRegions } from "./model.js";
import { finite, whole } from "./numbers.js";
import type { CircleRegion } from "./ranges.js";
import type { Buffered } from "./region.js";
import type { Spec } from "./specs.js";
import type { Host } from "./subscription.js";

/** Least radius of a refresh circle. */
const REFRESH_M_MIN = 200;
/** The most circles of objects: Android monitors 100 for an app, and one is the refresh circle. */
const LIMIT_MAX = 99;

/** The circles of a device that does not know its matches. */
export const UNKNOWN: OsRegions = { places: [], mustStayAwake: true };

/** What the circles depend on besides the subscription: a fix, on a frame, at a time. */
type Fixed = Pick<Host, "clock" | "location" | "point" | "frame">;

/** Validate the spec of a subscription, and the arguments of `Subscription.osRegions`. */
export function checkRequest(spec: Spec, radiusM: number, limit: number): void {
    if (spec.kind !== "boolean" || !spec.moving || spec.range.kind !== "circle")
        throw invalid("spec", spec, 'boolean, with a range that moves: { kind: "circle", radiusM }');
    const most = spec.range.radiusM;
    const metres = `a number of metres, above 0, at most the radius of the range (${most})`;
    if (finite(radiusM, "radiusM", metres) <= 0 || radiusM > most)
        throw invalid("radiusM", radiusM, metres);
    whole(limit, "limit", 1, LIMIT_MAX, `a whole number, 1 to ${LIMIT_MAX}`);
}

/** Return the circles about a device. It costs O(buffer). */
export function osRegions(
    device: Fixed,
    region: CircleRegion,
    objects: ReadonlyMap<bigint, LiveObject>,
    radiusM: number,
    limit: number,
): OsRegions {
    const { xM, yM } = device.point;
    const nearest = region.nearest(xM, yM, device.clock.nowMs());
    const places = nearest.slice(0, limit).map(([, one]) => {
        const entry = region.buffer.get(one) as Buffered;
        return place(device.frame, objects.get(one) as LiveObject, entry, radiusM);
    });
    const nextM = nearest[limit]?.[0] ?? Infinity;
    const reachM = Math.min(region.reachM(xM, yM), nextM);
    if (reachM === Infinity) return { places, mustStayAwake: false };
    const refresh = refreshCircle(device, reachM, radiusM);
    return refresh ? { places, refresh, mustStayAwake: false } : { places, mustStayAwake: true };
}

/** Return a circle with all places within a distance of an object or its area. */
function place(frame: Frame, object: LiveObject, entry: Buffered, radiusM: number): OsRegion {
    const { lon, lat } = object;
    const { area, xM, yM, expiryMs: untilMs } = entry;
    const extentM = area ? groundExtentM(frame, lat, areaExtent(area, xM, yM)) : 0;
    return { lon, lat, radiusM: radiusM + extentM, untilMs, object };
}

/** Return the refresh circle; undefined if it would be too small. */
function refreshCircle(device: Fixed, reachM: number, radiusM: number): OsRegion | undefined {
    const { lon, lat, accuracyM } = device.location;
    const refreshM = groundRadiusM(device.frame, lon, lat, reachM) - radiusM - accuracyM;
    return refreshM < REFRESH_M_MIN ? undefined : { lon, lat, radiusM: refreshM, untilMs: 0 };
}
