/** Objects to publish, as messages. */

import { create } from "@bufbuild/protobuf";
import type { ObjectArea } from "./core/areas.js";
import { invalid } from "./core/errors.js";
import { finite, whole } from "./core/numbers.js";
import { NewObjectSchema, ObjectAreaSchema } from "./generated/nearcast/v1/objects_pb.js";
import type {
    NewObject as WireObject,
    ObjectArea as WireArea,
} from "./generated/nearcast/v1/objects_pb.js";

/** Objects in one request. */
export const OBJECTS_MAX = 1000;

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

/** Convert an object to a message; `field` is its name in errors. */
export function writeObject(object: NewObject, field: string): WireObject {
    const { keywords, lon, lat, area, ttlMs, payload, key } = object;
    if (!Array.isArray(keywords)) throw invalid(`${field}.keywords`, keywords, "an array of texts");
    const ttl = whole(ttlMs, `${field}.ttlMs`, 1, Number.MAX_SAFE_INTEGER, "a whole number, at least 1");
    const common = {
        keywords: [...keywords],
        ttlMs: BigInt(ttl),
        ...(payload && { payload: Uint8Array.from(payload) }),
        ...(key !== undefined && { key }),
    };
    if (area !== undefined) return create(NewObjectSchema, { ...common, area: writeArea(area, field) });
    if (lon === undefined || lat === undefined) {
        throw invalid(field, "without a place", "given lon and lat, or an area");
    }
    const position = { lon: finite(lon, `${field}.lon`), lat: finite(lat, `${field}.lat`) };
    return create(NewObjectSchema, { ...common, position });
}

function writeArea(area: ObjectArea, field: string): WireArea {
    if (area.kind === "bounds") {
        const { lonMin, latMin, lonMax, latMax } = area;
        return create(ObjectAreaSchema, {
            shape: { case: "rectangle", value: { lonMin, latMin, lonMax, latMax } },
        });
    }
    if (area.holes !== undefined && area.holes.length > 0) {
        const limit = "absent: areas of objects have none";
        throw invalid(`${field}.area.holes`, `${area.holes.length} holes`, limit);
    }
    const vertices = area.outer.map(([lon, lat]) => ({ lon, lat }));
    return create(ObjectAreaSchema, { shape: { case: "polygon", value: { vertices } } });
}
