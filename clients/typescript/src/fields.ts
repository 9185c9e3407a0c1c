/** The fields of what an app gives: others are refused, because they may be misspelt. */

import type { AttachOptions, ConnectOptions } from "./client.js";
import type { ObjectArea } from "./core/areas.js";
import { RefusedError, invalid } from "./core/errors.js";
import type { Motion } from "./core/request_sender.js";
import type { Range, Spec, Window } from "./core/specs.js";
import type { SubscribeOptions } from "./device.js";
import type { NewObject } from "./publishing.js";

/** The names of all fields of a type, or of all members of a union. */
export type Names<Value> = Readonly<Record<Value extends unknown ? keyof Value : never, true>>;
type Table = Readonly<Record<string, true>>;
type Kinds<Value extends { kind: string }> = {
    readonly [Kind in Value["kind"]]: Names<Extract<Value, { kind: Kind }>>;
};

export const CONNECT: Names<ConnectOptions> = { token: true, webSocket: true, insecure: true };
/** Those of a fix that `move` accepts are among them. */
export const ATTACH: Names<AttachOptions & Motion> = {
    lon: true,
    lat: true,
    accuracyM: true,
    privacyRadiusM: true,
    prefetchM: true,
    takeOver: true,
    waitMs: true,
    signal: true,
    headingDeg: true,
    speedMps: true,
};
export const SUBSCRIBE: Names<SubscribeOptions> = { name: true, signal: true };
const OBJECT: Names<NewObject> = {
    keywords: true,
    lon: true,
    lat: true,
    area: true,
    ttlMs: true,
    payload: true,
    key: true,
};
const AREAS: Kinds<ObjectArea> = {
    bounds: { kind: true, lonMin: true, latMin: true, lonMax: true, latMax: true },
    polygon: { kind: true, outer: true, holes: true },
};
const RANGES: Kinds<Range> = {
    ...AREAS,
    circle: { kind: true, radiusM: true, center: true },
    rectangle: { kind: true, widthM: true, heightM: true },
};
const WINDOW: Names<Window> = { durationMs: true, count: true };
const SPECS: Kinds<Spec> = {
    topK: {
        kind: true,
        keywords: true,
        k: true,
        alpha: true,
        similarity: true,
        region: true,
        window: true,
        distanceScaleM: true,
    },
    boolean: {
        kind: true,
        expression: true,
        range: true,
        moving: true,
        region: true,
        dwellMs: true,
        window: true,
    },
};

/** Refuse what is no object, and an unknown field; `field` is the name of the object in errors. */
export function requireFields(value: unknown, field: string, known: Table): void {
    const names = () => Object.keys(known).join(", ");
    // The value is not shown: it may be a token.
    if (typeof value !== "object" || value === null || Array.isArray(value)) {
        throw refused(field, typeOf(value), `an object with fields of ${names()}`);
    }
    for (const name of Object.keys(value)) {
        if (Object.hasOwn(known, name)) continue;
        throw refused(`${field}.${name}`, "unknown", `one of ${names()}`);
    }
}

/** Refuse a spec without a known kind, and unknown fields of it. */
export function requireSpec(spec: Spec): void {
    requireKind(spec, "spec", SPECS);
    if (spec.window !== undefined) requireFields(spec.window, "spec.window", WINDOW);
    if (spec.kind === "boolean") requireKind(spec.range, "spec.boolean.range", RANGES);
}

/** Refuse an object to publish with unknown fields; `field` is its name in errors. */
export function requireObject(object: NewObject, field: string): void {
    requireFields(object, field, OBJECT);
    if (object.area !== undefined) requireKind(object.area, `${field}.area`, AREAS);
}

function requireKind(
    value: { readonly kind: string } | undefined,
    field: string,
    kinds: Readonly<Record<string, Table>>,
): void {
    const known = Object.entries(kinds).find(([kind]) => kind === value?.kind);
    if (known === undefined) {
        throw invalid(field, value, `an object whose kind is one of ${Object.keys(kinds).join(", ")}`);
    }
    requireFields(value, field, known[1]);
}

function typeOf(value: unknown): string {
    if (value === undefined || value === null) return String(value);
    return Array.isArray(value) ? "an array" : `of type ${typeof value}`;
}

function refused(field: string, value: string, limit: string): RefusedError {
    return new RefusedError({ reason: "INVALID_FIELD", field, value, limit });
}
