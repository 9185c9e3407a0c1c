/** The kinds of subscriptions on the device: a region, and what a delta does to it. */

import type { Delta, Drop } from "../generated/nearcast/v1/subscriptions_pb.js";
import { AnchoredRegion, StationaryRegion } from "./anchored.js";
import { DwellTimers } from "./dwell.js";
import type { Frame, Point } from "./frame.js";
import { CircleRegion, FixedRegion, RectangleRegion } from "./ranges.js";
import type { Buffered, Region } from "./region.js";
import { scoreOf } from "./scoring.js";
import type { BooleanSpec, Spec, TopKSpec } from "./specs.js";

/** A region with the operations that depend on the kind of its subscription. */
export interface KindRegion {
    readonly region: Region;
    /** Undefined if objects enter the result at once. */
    readonly dwell?: DwellTimers;
    /** Apply a delta; `matchesMax` is the server's limit. */
    update(delta: Delta, add: readonly Buffered[], matchesMax: number): void;
    /** Return the score of an object in the result, for display; 0 if results are not scored. */
    score(lengthM: number, frame: Frame): number;
}

/** Return a new region for a spec, with an empty buffer. */
export function regionOf(spec: Spec): KindRegion {
    return spec.kind === "topK" ? topKRegion(spec) : booleanRegion(spec);
}

function topKRegion(spec: TopKSpec): KindRegion {
    const { k = 10, alpha = 0.5, distanceScaleM } = spec;
    const region = spec.region === "stationary" ? new StationaryRegion(k) : new AnchoredRegion(k);
    return {
        region,
        update(delta, add) {
            const reachM = delta.bound.case === "reach" ? delta.bound.value.lengthM : 0;
            const drop = dropped(delta.drop);
            region.update(anchorOf(delta), reachM, add, drop);
            if (region instanceof StationaryRegion)
                region.settle(Number(delta.timeMs), drop, delta.snapshot);
        },
        score: (lengthM, frame) => scoreOf(lengthM, alpha, distanceScaleM || frame.maxdistM),
    };
}

function booleanRegion(spec: BooleanSpec): KindRegion {
    const region = rangeRegion(spec);
    return {
        region,
        ...(spec.dwellMs && { dwell: new DwellTimers(spec.dwellMs, region) }),
        update(delta, add, matchesMax) {
            const { slackM, tooMany } =
                delta.bound.case === "slack" ? delta.bound.value : { slackM: 0, tooMany: false };
            region.update(anchorOf(delta), { slackM, tooMany, matchesMax }, add, dropped(delta.drop));
        },
        score: () => 0,
    };
}

function rangeRegion({ range, moving }: BooleanSpec): FixedRegion {
    if (moving && range.kind === "circle") return new CircleRegion(range.radiusM);
    if (moving && range.kind === "rectangle") return new RectangleRegion(range.widthM, range.heightM);
    return new FixedRegion();
}

function anchorOf({ anchor }: Delta): Point {
    return { xM: anchor?.xM ?? 0, yM: anchor?.yM ?? 0 };
}

function dropped(drop: readonly Drop[]): bigint[] {
    return drop.map((one) => one.objectId);
}
