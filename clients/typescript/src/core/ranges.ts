/**
 * Whether the device holds all matches of a boolean subscription. See `safe_region/regions/ranges.py`.
 */

import { areaDistance, areaMeetsBox, isPolygon } from "./areas.js";
import type { Box } from "./areas.js";
import type { Point } from "./frame.js";
import { Region } from "./region.js";
import type { Buffered, Evaluation } from "./region.js";
import { REACH_SLACK, byRank, length } from "./scoring.js";
import type { Ranked } from "./scoring.js";

/**
 * A result that is too large counts as such until it has fewer objects than this fraction of the limit.
 */
const CAPPED_SHARE = 0.9;

/**
 * More than twice the error of distances to areas: an absolute part, and a fraction of the coordinates.
 */
const ROUNDING_M = 1e-9;
const ROUNDING_SHARE = 1e-14;

/** A device moves by this fraction of the radius before it requests another part of a result. */
const STEP_SHARE = 0.1;

/** The bound of a boolean subscription. */
export interface SlackBound {
    readonly slackM: number;
    readonly tooMany: boolean;
    /** The most objects that the server sends. */
    readonly matchesMax: number;
}

/** The objects that a device holds for a fixed range: its result. */
export class FixedRegion extends Region {
    protected bound: SlackBound = { slackM: 0, tooMany: false, matchesMax: 0 };

    /** Apply a delta. */
    update(anchor: Point, bound: SlackBound, add: Iterable<Buffered>, drop: Iterable<bigint>): void {
        this.hold(anchor, add, drop);
        this.bound = bound;
    }

    override evaluate(_xM: number, _yM: number, nowMs: number, _uncertaintyM = 0): Evaluation {
        const best = this.live(this.anchor.xM, this.anchor.yM, nowMs).sort(byRank);
        if (this.bound.tooMany) return this.partial(best, best.length, Infinity);
        return { best, marginM: this.bound.slackM, exact: this.bound.slackM === Infinity };
    }

    /** Return whether a held object is in the result of a device at a place. */
    matches(_objectId: bigint, _xM: number, _yM: number): boolean {
        return true;
    }

    /** Return the live held objects with their distances from a point. */
    protected live(xM: number, yM: number, nowMs: number): Ranked[] {
        const found: Ranked[] = [];
        for (const entry of this.buffer.values()) {
            if (entry.expiryMs > nowMs)
                found.push([length(xM - entry.xM, yM - entry.yM, 0), entry.objectId]);
        }
        return found;
    }

    /** Return a part of a result that is too large. */
    protected partial(best: readonly Ranked[], liveCount: number, roomM: number): Evaluation {
        const isLacking = liveCount < this.bound.matchesMax * CAPPED_SHARE;
        return { best, marginM: roomM, exact: false, isLacking, isCapped: !isLacking && roomM > 0 };
    }
}

/** The objects that a device holds for a circle that moves with it. */
export class CircleRegion extends FixedRegion {
    constructor(readonly radiusM: number) {
        super();
    }

    override evaluate(xM: number, yM: number, nowMs: number, uncertaintyM = 0): Evaluation {
        const live = this.live(xM, yM, nowMs);
        const best = live.filter((one) => this.isWithin(xM, yM, one)).sort(byRank);
        const dxM = xM - this.anchor.xM;
        const dyM = yM - this.anchor.yM;
        if (this.bound.tooMany) {
            return this.partial(best, live.length, 2 * (this.sizeM() * STEP_SHARE - length(dxM, dyM, 0)));
        }
        const roundingM = ROUNDING_M + ROUNDING_SHARE * (Math.abs(xM) + Math.abs(yM));
        const roomM = this.roomM(dxM, dyM, 2 * uncertaintyM + roundingM);
        const isAnchor = dxM === 0 && dyM === 0 && uncertaintyM === 0;
        return { best, marginM: 2 * roomM, exact: isAnchor || roomM > 0 };
    }

    override matches(objectId: bigint, xM: number, yM: number): boolean {
        const entry = this.held(objectId);
        return this.isWithin(xM, yM, [length(xM - entry.xM, yM - entry.yM, 0), objectId]);
    }

    /**
     * Return the live held objects, also those beyond the range, with their distances from a place to
     * the object or its area; nearest first.
     */
    nearest(xM: number, yM: number, nowMs: number): Ranked[] {
        return this.live(xM, yM, nowMs)
            .map((one): Ranked => [this.#distanceM(xM, yM, one), one[1]])
            .sort(byRank);
    }

    /** Return a distance from a place within which all matches are held; 0 if there is none. */
    reachM(xM: number, yM: number): number {
        if (this.bound.tooMany) return 0;
        const movedM = length(xM - this.anchor.xM, yM - this.anchor.yM, 0);
        return Math.max(0, this.radiusM + this.bound.slackM - movedM);
    }

    /** Return the least distance from the middle of the range to its edge. */
    protected sizeM(): number {
        return this.radiusM;
    }

    /** Return the distance left in the test at an offset from the anchor. */
    protected roomM(dxM: number, dyM: number, besidesM: number): number {
        const heldM = (this.radiusM + this.bound.slackM) * (1 - REACH_SLACK);
        return heldM - (this.radiusM + length(dxM, dyM, 0) + besidesM);
    }

    /** Return whether the range contains an object whose point is at a given distance. */
    protected isWithin(xM: number, yM: number, found: Ranked): boolean {
        return this.#distanceM(xM, yM, found) <= this.radiusM;
    }

    /** Return the distance from a place to an object or its area; that to its point is given. */
    #distanceM(xM: number, yM: number, [lengthM, objectId]: Ranked): number {
        const { area } = this.held(objectId);
        return area === undefined ? lengthM : areaDistance(area, xM, yM);
    }

    protected held(objectId: bigint): Buffered {
        return this.buffer.get(objectId) as Buffered;
    }
}

/** The objects that a device holds for a rectangle that moves with it. */
export class RectangleRegion extends CircleRegion {
    readonly #halfXM: number;
    readonly #halfYM: number;

    constructor(widthM: number, heightM: number) {
        super(0);
        this.#halfXM = widthM / 2;
        this.#halfYM = heightM / 2;
    }

    protected override sizeM(): number {
        return Math.min(this.#halfXM, this.#halfYM);
    }

    protected override roomM(dxM: number, dyM: number, besidesM: number): number {
        const along = (halfM: number, movedM: number) =>
            (halfM + this.bound.slackM) * (1 - REACH_SLACK) - (halfM + Math.abs(movedM) + besidesM);
        return Math.min(along(this.#halfXM, dxM), along(this.#halfYM, dyM));
    }

    protected override isWithin(xM: number, yM: number, [, objectId]: Ranked): boolean {
        const entry = this.held(objectId);
        if (entry.area !== undefined && isPolygon(entry.area))
            return areaMeetsBox(entry.area, this.#box(xM, yM));
        const box = entry.area ?? { x1M: entry.xM, y1M: entry.yM, x2M: entry.xM, y2M: entry.yM };
        return (
            Math.max(box.x1M - xM, xM - box.x2M) <= this.#halfXM &&
            Math.max(box.y1M - yM, yM - box.y2M) <= this.#halfYM
        );
    }

    #box(xM: number, yM: number): Box {
        return {
            x1M: xM - this.#halfXM,
            y1M: yM - this.#halfYM,
            x2M: xM + this.#halfXM,
            y2M: yM + this.#halfYM,
        };
    }
}
