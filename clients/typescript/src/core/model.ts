/** Data types of the SDK's public interface. */

import type { Object$ as WireObject } from "../generated/nearcast/v1/objects_pb.js";
import { areaFrom } from "./areas.js";
import type { ObjectArea } from "./areas.js";

/** A published object. Times are server time in milliseconds. */
export interface LiveObject {
    readonly id: bigint;
    /** The position; for an object with an area, a point inside it that the server has chosen. */
    readonly lon: number;
    readonly lat: number;
    readonly keywords: readonly string[];
    readonly createdMs: number;
    readonly expiryMs: number;
    readonly payload: Uint8Array;
    readonly key: string;
    readonly area?: ObjectArea;
}

/** An object in a result. */
export interface Match {
    readonly object: LiveObject;
    /** Score by which results are ranked, smaller is better; 0 for boolean subscriptions. */
    readonly score: number;
    /** Distance from the device's true position to the object, on the ground, to 0.1 %. */
    readonly distanceM: number;
}

export type ChangeKind = "entered" | "left" | "reordered";

export type ChangeReason =
    | "subscribed"
    | "moved"
    | "published"
    | "retracted"
    | "replaced"
    | "expired"
    | "out of window"
    | "dwelled"
    | "resumed"
    | "refilled"
    | "reweighed";

/** One change of a result. `rank` counts from 0; for an object that left, it is its last rank. */
export interface Change {
    readonly kind: ChangeKind;
    readonly object: LiveObject;
    readonly rank: number;
    readonly reason: ChangeReason;
}

/**
 * How exact a result is.
 *
 * - `exact`: the result equals the server's result.
 * - `lagging`: the server cannot follow the log of its cluster, and may lack changes; the result is exact as
 *   of `Device.lagOffset`.
 * - `catching up`: the device has reconnected, and the missed changes are on their way.
 * - `stale`: a response is due.
 * - `too vague`: the position is known too vaguely; the result has the best of the held objects.
 * - `too many`: more objects match than the server sends; the result has some of them.
 * - `offline`: there is no stream, or no response for seconds; the result is that of all objects known
 *   before.
 * - `offline and stale`: as offline, but the device has left its safe region, or too many objects have
 *   expired.
 * - `ended`: the subscription has ended; `Subscription.error` has the reason.
 */
export type SubscriptionState =
    | "exact"
    | "lagging"
    | "catching up"
    | "stale"
    | "too vague"
    | "too many"
    | "offline"
    | "offline and stale"
    | "ended";

/**
 * A circle on the ground within which the device has nothing to report, until one of its buffers changes.
 */
export interface Geofence {
    /** The centre, which is the true position of the device. */
    readonly lon: number;
    readonly lat: number;
    /** Radius in metres; Infinity if the device may go anywhere, 0 if it may not move. */
    readonly radiusM: number;
    /** Server time at which the next held object ends, in milliseconds; 0 for never. */
    readonly untilMs: number;
}

/** A circle on the ground for the geofencing of a phone. */
export interface OsRegion {
    readonly lon: number;
    readonly lat: number;
    /** Radius in metres. */
    readonly radiusM: number;
    /**
     * Server time at which the object expires or leaves a window of time, in milliseconds; 0 for the
     * refresh circle, which does not end.
     */
    readonly untilMs: number;
    /** The object of a place; undefined for the refresh circle. */
    readonly object?: LiveObject;
}

/** The circles that a phone monitors while the app sleeps. */
export interface OsRegions {
    /** Circles of the nearest objects, nearest first: wake the app when the phone enters one. */
    readonly places: readonly OsRegion[];
    /**
     * Circle about the device: wake the app when the phone leaves it. Undefined if it would be too small,
     * and if the device holds all matches and each has a circle.
     */
    readonly refresh?: OsRegion;
    /**
     * Whether the device may enter a place without a circle before it leaves any circle: the refresh
     * circle would be too small.
     */
    readonly mustStayAwake: boolean;
}

/** Counters of one device. Bytes are protobuf bytes. */
export interface Counters {
    moves: number;
    reports: number;
    deltas: number;
    objects: number;
    bytesSent: number;
    bytesReceived: number;
}

/** Convert a message to an object. */
export function liveObject(message: WireObject): LiveObject {
    const { id, position, keywords, payload, key } = message;
    const area = message.area === undefined ? undefined : areaFrom(message.area);
    return {
        id,
        lon: position?.lon ?? 0,
        lat: position?.lat ?? 0,
        keywords,
        createdMs: Number(message.createdMs),
        expiryMs: Number(message.expiryMs),
        payload,
        key,
        ...(area && { area }),
    };
}

/** Return whether two objects are the same in all their fields: ids may be reused. */
export function isSameObject(one: LiveObject | undefined, other: LiveObject | undefined): boolean {
    return one === other || (one !== undefined && other !== undefined && textOf(one) === textOf(other));
}

function textOf(object: LiveObject): string {
    const keywords = [...object.keywords].sort();
    return JSON.stringify({ ...object, id: String(object.id), keywords, payload: [...object.payload] });
}
