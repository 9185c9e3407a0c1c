/** Objects to publish, as messages. */

import { create } from "@bufbuild/protobuf";
import { writtenBounds, writtenRing } from "./core/areas.js";
import type { ObjectArea } from "./core/areas.js";
import { invalid } from "./core/errors.js";
import { checkedName, finite, whole } from "./core/numbers.js";
import { requireObject } from "./fields.js";
import { NewObjectSchema, ObjectAreaSchema } from "./generated/nearcast/v1/objects_pb.js";
import type {
    NewObject as WireObject,
    ObjectArea as WireArea,
} from "./generated/nearcast/v1/objects_pb.js";
import { RetractRequestSchema } from "./generated/nearcast/v1/publisher_service_pb.js";
import type { RetractRequest } from "./generated/nearcast/v1/publisher_service_pb.js";

/** Objects in one request. */
export const OBJECTS_MAX = 1000;
const ID_MAX = 2n ** 63n - 1n;

/** An object to publish, at a position or with an area. */
export interface NewObject {
    readonly keywords: readonly string[];
    readonly lon?: number;
    readonly lat?: number;
    readonly area?: ObjectArea;
    /** Lifetime in milliseconds, from the time at which the server accepts the object. */
    readonly ttlMs: number;
    /** Content that the server does not read. */
    readonly payload?: Uint8Array;
    /** The publisher's name for the object: publishing it again replaces the object. */
    readonly key?: string;
}

/** Objects to retract: their ids, and the publisher's keys of further ones. */
export interface Retraction {
    readonly ids?: readonly bigint[];
    readonly keys?: readonly string[];
}

/** Convert an object to a message; `field` is its name in errors. */
export function writeObject(object: NewObject, field: string): WireObject {
    requireObject(object, field);
    const { keywords, lon, lat, area, ttlMs, payload, key } = object;
    if (!Array.isArray(keywords)) throw invalid(`${field}.keywords`, keywords, "an array of texts");
    if (payload !== undefined && !isBytes(payload)) {
        throw invalid(`${field}.payload`, payload, "a Uint8Array, such as that of a TextEncoder");
    }
    const ttl = whole(ttlMs, `${field}.ttlMs`, 1, Number.MAX_SAFE_INTEGER, "a whole number, at least 1");
    const common = {
        keywords: [...keywords],
        ttlMs: BigInt(ttl),
        ...(payload && { payload: Uint8Array.from(payload) }),
        ...(key !== undefined && { key: checkedName(key, `${field}.key`, { optional: true }) }),
    };
    if (area !== undefined) return create(NewObjectSchema, { ...common, area: writeArea(area, field) });
    if (lon === undefined || lat === undefined) {
        throw invalid(field, "without a place", "given lon and lat, or an area");
    }
    const position = { lon: finite(lon, `${field}.lon`), lat: finite(lat, `${field}.lat`) };
    return create(NewObjectSchema, { ...common, position });
}

/** Return whether a value is a Uint8Array, also one of another realm, such as those of test runners. */
function isBytes(value: unknown): boolean {
    return Object.prototype.toString.call(value) === "[object Uint8Array]";
}

/** Convert the objects to retract to a message. */
export function writeRetraction({ ids = [], keys = [] }: Retraction): RetractRequest {
    if (!Array.isArray(ids)) throw invalid("ids", ids, "an array of bigints");
    if (!Array.isArray(keys)) throw invalid("keys", keys, "an array of texts");
    if (ids.length + keys.length === 0) throw invalid("objects", "empty", "given: ids, or keys");
    ids.forEach((id: unknown, i) => {
        if (typeof id !== "bigint" || id < 1n || id > ID_MAX) {
            throw invalid(`ids[${i}]`, id, "the id of an object: a bigint, at least 1n, such as 17n");
        }
    });
    keys.forEach((key: string, i) => checkedName(key, `keys[${i}]`));
    return create(RetractRequestSchema, { ids: [...ids], keys: [...keys] });
}

function writeArea(area: ObjectArea, field: string): WireArea {
    if (area.kind === "bounds") {
        const value = writtenBounds(area, `${field}.area`);
        return create(ObjectAreaSchema, { shape: { case: "rectangle", value } });
    }
    if (area.holes !== undefined && area.holes.length > 0) {
        const limit = "absent: areas of objects have none";
        throw invalid(`${field}.area.holes`, `${area.holes.length} holes`, limit);
    }
    const value = writtenRing(area.outer, `${field}.area.outer`);
    return create(ObjectAreaSchema, { shape: { case: "polygon", value } });
}
