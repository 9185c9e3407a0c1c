/**
 * Whether a top-k result is exact, without the server. See `safe_region/regions/anchored.py` for the
 * proof.
 */

import type { Point } from "./frame.js";
import { Region } from "./region.js";
import type { Buffered, Evaluation } from "./region.js";
import { REACH_SLACK, byRank, length } from "./scoring.js";
import type { Ranked } from "./scoring.js";

/** The buffer, anchor and reach of one top-k subscription. */
export class AnchoredRegion extends Region {
    #reachM = 0;

    constructor(readonly k: number) {
        super();
    }

    /** Apply a delta. */
    update(anchor: Point, reachM: number, add: Iterable<Buffered>, drop: Iterable<bigint>): void {
        this.hold(anchor, add, drop);
        this.#reachM = reachM;
    }

    override evaluate(xM: number, yM: number, nowMs: number, uncertaintyM = 0): Evaluation {
        const best = this.#best(xM, yM, nowMs);
        if (this.#reachM === Infinity) return { best, marginM: Infinity, exact: true };
        const last = best[this.k - 1];
        if (last === undefined) return { best, marginM: -Infinity, exact: false, isLacking: true };
        const movedM = length(xM - this.anchor.xM, yM - this.anchor.yM, 0);
        const usedM = last[0] + movedM + 2 * uncertaintyM;
        const isAnchor = movedM === 0 && uncertaintyM === 0;
        const boundM = this.#reachM * (1 - REACH_SLACK);
        return { best, marginM: boundM - usedM, exact: isAnchor || usedM < boundM };
    }

    #best(xM: number, yM: number, nowMs: number): Ranked[] {
        const found: Ranked[] = [];
        for (const entry of this.buffer.values()) {
            if (entry.expiryMs > nowMs) {
                found.push([length(xM - entry.xM, yM - entry.yM, entry.constantM), entry.objectId]);
            }
        }
        return found.sort(byRank).slice(0, this.k);
    }
}

/** The region of a stationary subscription: the point where the server evaluated it. */
export class StationaryRegion extends AnchoredRegion {
    /** Whether there were k objects when the server last decided the result. */
    #isFull = false;
    /** Expiry times of objects that were dropped since then. */
    #expired = new Map<bigint, number>();

    /** Record that the held objects were the result at a time, except for those expired since. */
    settle(timeMs: number, dropped: Iterable<bigint>, isSnapshot: boolean): void {
        const gone = new Set([...this.buffer.keys(), ...dropped]);
        const kept = [...this.#expired].filter(([id, expiryMs]) => expiryMs > timeMs && !gone.has(id));
        this.#expired = new Map(isSnapshot ? [] : kept);
        const held = [...this.buffer.values()].filter((one) => one.expiryMs > timeMs).length;
        this.#isFull = held + this.#expired.size >= this.k;
    }

    override forgetExpired(nowMs: number): bigint[] {
        for (const entry of this.buffer.values()) {
            if (entry.expiryMs <= nowMs) this.#expired.set(entry.objectId, entry.expiryMs);
        }
        return super.forgetExpired(nowMs);
    }

    override evaluate(xM: number, yM: number, nowMs: number, uncertaintyM = 0): Evaluation {
        const { best } = super.evaluate(xM, yM, nowMs);
        const movedM = length(xM - this.anchor.xM, yM - this.anchor.yM, 0);
        const isThere = movedM === 0 && uncertaintyM === 0;
        const isDue = isThere && this.#isFull && best.length < this.k;
        const exact = isThere && !isDue;
        return { best, marginM: exact ? 0 : -Infinity, exact, isDue };
    }
}
