/** Specs of subscriptions: what an app writes, the messages, and the comparison of two specs. */

import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
    RegionMode as WireRegion,
    Similarity as WireSimilarity,
    SubscriptionSpecSchema,
} from "../generated/nearcast/v1/subscriptions_pb.js";
import type {
    Boolean as WireBoolean,
    SubscriptionSpec,
} from "../generated/nearcast/v1/subscriptions_pb.js";
import { opened, writtenBounds, writtenPosition, writtenRing } from "./areas.js";
import type { Bounds, Polygon } from "./areas.js";
import { RefusedError, invalid } from "./errors.js";
import { clausesOf } from "./expressions.js";
import type { Expression } from "./expressions.js";
import type { Position } from "./frame.js";
import { byCodePoint, normalisedKeyword } from "./keywords.js";
import { finite, whole } from "./numbers.js";

const TINY_DEG = 1e-17;

/** A measure of the similarity of keywords. */
export type Similarity = "jaccard" | "dice" | "cosine" | "tfidf";

/** The method by which a subscription's safe region works. */
export type RegionMode = "anchored" | "ellipse" | "nearest" | "stationary";

/**
 * A window selects live objects by age: those published within `durationMs`, or those among the last
 * `count` published ones. Without a stream, results for a count are not exact.
 */
export type Window = { readonly durationMs: number } | { readonly count: number };

/** Requests the k best objects for the position of the device. */
export interface TopKSpec {
    readonly kind: "topK";
    /** Requested keywords. An object must share at least one of them. */
    readonly keywords: readonly string[];
    /** Number of objects in the result; 10 by default. */
    readonly k?: number;
    /** Weight of distance against text, between 0 and 1; 0.5 by default. */
    readonly alpha?: number;
    readonly similarity?: Similarity;
    readonly region?: RegionMode;
    readonly window?: Window;
    /** The distance that costs as much as having no keyword in common, in metres. */
    readonly distanceScaleM?: number;
}

/** A circle, edge included: fixed with a center, or about the device. The radius is on the plane. */
export interface Circle {
    readonly kind: "circle";
    readonly radiusM: number;
    readonly center?: Position;
}

/** A rectangle about the device, edges included, on the plane. */
export interface Rectangle {
    readonly kind: "rectangle";
    readonly widthM: number;
    readonly heightM: number;
}

/** The region in which an object must be. */
export type Range = Circle | Bounds | Rectangle | Polygon;

/** Requests every object that matches an expression within a range. */
export interface BooleanSpec {
    readonly kind: "boolean";
    readonly expression: Expression;
    readonly range: Range;
    /** Whether the range moves with the device, which is its middle; no by default. */
    readonly moving?: boolean;
    readonly region?: RegionMode;
    /** Time for which an object must have matched at all positions before it is in the result. */
    readonly dwellMs?: number;
    readonly window?: Window;
}

/** Spec of a subscription. */
export type Spec = TopKSpec | BooleanSpec;

const INT32_MAX = 2 ** 31 - 1;
const DWELL_MS_MAX = 24 * 3600 * 1000;
const WINDOW_MS_MAX = 366 * 24 * 3600 * 1000;
const DEFAULT_K = 10;
const DEFAULT_ALPHA = 0.5;

const REGIONS: Record<RegionMode, WireRegion> = {
    anchored: WireRegion.ANCHORED,
    ellipse: WireRegion.ELLIPSE,
    nearest: WireRegion.NEAREST,
    stationary: WireRegion.STATIONARY,
};
const SIMILARITIES: Record<Similarity, WireSimilarity> = {
    jaccard: WireSimilarity.JACCARD,
    dice: WireSimilarity.DICE,
    cosine: WireSimilarity.COSINE,
    tfidf: WireSimilarity.TFIDF,
};

/** Return whether the server must know the device's exact position, and requests it. */
export function needsExactPosition(spec: Spec): boolean {
    return (spec.region ?? "anchored") !== "anchored";
}

/** Return the duration of the window of a spec; 0 if it has none. */
export function windowMs(spec: Spec): number {
    return spec.window !== undefined && "durationMs" in spec.window ? spec.window.durationMs : 0;
}

// -- to messages ------------------------------------------------------------------------------------

/** Convert a spec to a message. */
export function writeSpec(spec: Spec): SubscriptionSpec {
    const common = { region: named(REGIONS, spec.region ?? "anchored", "spec.region") };
    const window = spec.window === undefined ? {} : { window: { last: writtenWindow(spec.window) } };
    if (spec.kind === "topK") {
        return create(SubscriptionSpecSchema, {
            ...common,
            ...window,
            kind: { case: "topK", value: writtenTopK(spec) },
        });
    }
    if (spec.kind !== "boolean") throw invalid("spec", spec, 'a spec with kind "topK" or "boolean"');
    return create(SubscriptionSpecSchema, {
        ...common,
        ...window,
        kind: { case: "boolean", value: writtenBoolean(spec) },
    });
}

type Kind = NonNullable<MessageInitShape<typeof SubscriptionSpecSchema>["kind"]>;
type TopKInit = Extract<Kind, { case: "topK" }>["value"];
type BooleanInit = Extract<Kind, { case: "boolean" }>["value"];

function writtenTopK(spec: TopKSpec): TopKInit {
    const { k = DEFAULT_K, alpha = DEFAULT_ALPHA, similarity = "jaccard", distanceScaleM } = spec;
    if (distanceScaleM === 0) {
        const limit = "a number of metres, at least 1, or absent for the diagonal of the service area";
        throw invalid("spec.topK.distanceScaleM", distanceScaleM, limit);
    }
    return {
        keywords: keywordList(spec.keywords, "spec.topK.keywords"),
        k: whole(k, "spec.topK.k", 1, INT32_MAX, "a whole number, at least 1"),
        alpha: finite(alpha, "spec.topK.alpha"),
        similarity: named(SIMILARITIES, similarity, "spec.topK.similarity"),
        distanceScaleM: finite(distanceScaleM ?? 0, "spec.topK.distanceScaleM"),
    };
}

function writtenBoolean(spec: BooleanSpec): BooleanInit {
    const { moving = false, dwellMs = 0 } = spec;
    return {
        clauses: clausesOf(spec.expression).map(({ required, excluded }) => ({
            required: [...required],
            excluded: [...excluded],
        })),
        moving,
        dwellMs: BigInt(
            whole(dwellMs, "spec.boolean.dwellMs", 0, DWELL_MS_MAX, "0 to a day, in milliseconds"),
        ),
        range: writtenRange(spec.range, moving),
    };
}

function writtenRange(range: Range, moving: boolean): NonNullable<NonNullable<BooleanInit>["range"]> {
    const field = "spec.boolean.range";
    switch (range?.kind) {
        case "circle": {
            if (range.center === undefined && !moving) {
                throw invalid(
                    `${field}.center`,
                    undefined,
                    "given; or moving: true for a circle about the device",
                );
            }
            const radiusM = finite(range.radiusM, `${field}.radiusM`);
            return {
                case: "circle",
                value: {
                    radiusM,
                    ...(range.center && { center: writtenPosition(range.center, `${field}.center`) }),
                },
            };
        }
        case "bounds":
            return { case: "rectangle", value: { bounds: writtenBounds(range, field) } };
        case "rectangle":
            if (!moving)
                throw invalid(
                    field,
                    range.kind,
                    "bounds; or moving: true for a rectangle about the device",
                );
            return {
                case: "rectangle",
                value: {
                    widthM: finite(range.widthM, `${field}.widthM`),
                    heightM: finite(range.heightM, `${field}.heightM`),
                },
            };
        case "polygon":
            return {
                case: "polygon",
                value: {
                    outer: writtenRing(range.outer, `${field}.outer`),
                    holes: (range.holes ?? []).map((hole, i) => writtenRing(hole, `${field}.holes[${i}]`)),
                },
            };
        default:
            throw invalid(field, range, "a circle, bounds, a rectangle or a polygon");
    }
}

function writtenWindow(
    window: Window,
): { case: "durationMs"; value: bigint } | { case: "count"; value: bigint } {
    const limit = "a whole number, at least 1";
    if ("durationMs" in window) {
        const value = whole(window.durationMs, "spec.window.durationMs", 1, WINDOW_MS_MAX, limit);
        return { case: "durationMs", value: BigInt(value) };
    }
    const count = whole(window.count, "spec.window.count", 1, Number.MAX_SAFE_INTEGER, limit);
    return { case: "count", value: BigInt(count) };
}

/** Return sorted keywords, one spelling of each. */
function keywordList(keywords: readonly string[], field: string): string[] {
    const limit = "an array of texts";
    if (!Array.isArray(keywords)) throw invalid(field, keywords, limit);
    const found = new Map<string, string>();
    for (const keyword of [...keywords].sort(byCodePoint)) {
        if (typeof keyword !== "string" || !isWellFormed(keyword)) throw invalid(field, keyword, limit);
        found.set(normalisedKeyword(keyword), keyword);
    }
    return [...found.values()];
}

function isWellFormed(text: string): boolean {
    return !/[\ud800-\udfff]/u.test(text);
}

function named<Name extends string, Value>(table: Record<Name, Value>, name: Name, field: string): Value {
    const found = Object.hasOwn(table, name) ? table[name] : undefined;
    if (found === undefined) throw invalid(field, name, `one of ${Object.keys(table).join(", ")}`);
    return found;
}

// -- from messages ----------------------------------------------------------------------------------

/** Convert a message to a spec; undefined if this SDK does not know it: another SDK may have made it. */
export function readSpec(message: SubscriptionSpec | undefined): Spec | undefined {
    if (message === undefined) return undefined;
    const window = readWindow(message);
    const region = nameOf(REGIONS, message.region || WireRegion.ANCHORED);
    if (window === "unknown" || region === undefined) return undefined;
    const common = { region, ...(window && { window }) };
    switch (message.kind.case) {
        case "topK": {
            const { keywords, k, alpha, distanceScaleM } = message.kind.value;
            const similarity = nameOf(
                SIMILARITIES,
                message.kind.value.similarity || WireSimilarity.JACCARD,
            );
            if (similarity === undefined) return undefined;
            const scale = distanceScaleM ? { distanceScaleM } : {};
            return { kind: "topK", keywords, k, alpha, similarity, ...scale, ...common };
        }
        case "boolean": {
            const range = readRange(message.kind.value);
            if (range === undefined || region === "ellipse" || region === "stationary") return undefined;
            const { clauses, moving, dwellMs } = message.kind.value;
            const expression = clauses.map(({ required, excluded }) => ({ required, excluded }));
            return { kind: "boolean", expression, range, moving, dwellMs: Number(dwellMs), ...common };
        }
        default:
            return undefined;
    }
}

function readWindow(message: SubscriptionSpec): Window | undefined | "unknown" {
    switch (message.window?.last.case) {
        case "durationMs":
            return { durationMs: Number(message.window.last.value) };
        case "count":
            return { count: Number(message.window.last.value) };
        default:
            return message.window === undefined ? undefined : "unknown";
    }
}

function readRange({ range, moving }: WireBoolean): Range | undefined {
    switch (range.case) {
        case "circle": {
            const { radiusM, center } = range.value;
            return {
                kind: "circle",
                radiusM,
                ...(center && { center: { lon: center.lon, lat: center.lat } }),
            };
        }
        case "rectangle": {
            const { bounds, widthM, heightM } = range.value;
            if (moving !== (bounds === undefined)) return undefined;
            if (bounds === undefined) return { kind: "rectangle", widthM, heightM };
            const { lonMin, latMin, lonMax, latMax } = bounds;
            return { kind: "bounds", lonMin, latMin, lonMax, latMax };
        }
        case "polygon": {
            if (moving) return undefined;
            const ring = (vertices: { lon: number; lat: number }[] = []): Position[] =>
                vertices.map(({ lon, lat }) => ({ lon, lat }));
            const holes = range.value.holes.map((hole) => ring(hole.vertices));
            return { kind: "polygon", outer: ring(range.value.outer?.vertices), holes };
        }
        default:
            return undefined;
    }
}

function nameOf<Name extends string>(table: Record<Name, number>, value: number): Name | undefined {
    return (Object.keys(table) as Name[]).find((name) => table[name] === value);
}

// -- comparison -------------------------------------------------------------------------------------

/** Return whether two specs request the same result: the case and order of keywords do not matter. */
export function isSameSpec(one: Spec, other: Spec): boolean {
    return specKey(one) === specKey(other);
}

function specKey(spec: Spec): string {
    const region = spec.region ?? "anchored";
    if (spec.kind === "topK") {
        const { k = DEFAULT_K, alpha = DEFAULT_ALPHA, similarity = "jaccard", distanceScaleM } = spec;
        const keywords = [...new Set(spec.keywords.map(normalisedKeyword))].sort(byCodePoint);
        return JSON.stringify([
            "topK",
            keywords,
            k,
            alpha,
            similarity,
            distanceScaleM,
            region,
            spec.window,
        ]);
    }
    const { range, moving = false, dwellMs = 0, window } = spec;
    return JSON.stringify([
        "boolean",
        clauseKey(spec.expression),
        rangeKey(range),
        moving,
        dwellMs,
        region,
        window,
    ]);
}

/** Clauses in their normal form. Those that cannot be normalised are compared as they are. */
function clauseKey(expression: Expression): unknown {
    try {
        return clausesOf(expression);
    } catch (error) {
        if (error instanceof RefusedError) return ["unreadable", expression];
        throw error;
    }
}

function rangeKey(range: Range): unknown {
    switch (range.kind) {
        case "circle":
            return ["circle", range.radiusM, range.center && written(range.center)];
        case "bounds":
            return ["bounds", range.lonMin, range.latMin, range.lonMax, range.latMax];
        case "rectangle":
            return ["rectangle", range.widthM, range.heightM];
        case "polygon":
            return [
                "polygon",
                [range.outer, ...(range.holes ?? [])].map((ring) => opened(ring.map(written))),
            ];
    }
}

/** A position as the server keeps it: longitude and latitude, where those below a millionth of a
 * micrometre are 0. */
function written({ lon, lat }: Position): Position {
    return { lon: withoutTiny(lon), lat: withoutTiny(lat) };
}

function withoutTiny(degrees: number): number {
    return Math.abs(degrees) >= TINY_DEG ? degrees : 0;
}
