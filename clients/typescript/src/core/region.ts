/** The state that every safe region holds, and its view from one position. */

import type { AreaShape } from "./areas.js";
import type { Point } from "./frame.js";
import type { Ranked } from "./scoring.js";

/** An object in a buffer. An object with an area has its position at a point inside the area. */
export interface Buffered {
    readonly objectId: bigint;
    readonly xM: number;
    readonly yM: number;
    /** The constant part of its length. */
    readonly constantM: number;
    readonly expiryMs: number;
    readonly area?: AreaShape | undefined;
}

/** The evaluation of a region at one position. */
export interface Evaluation {
    /** The objects in the result as far as the device knows, best first. */
    readonly best: readonly Ranked[];
    /** The distance that is left in the test. The device may move by half of it without a report. */
    readonly marginM: number;
    /** Whether `best` is the result: the device may stay silent. */
    readonly exact: boolean;
    /** Whether the device holds too few objects, wherever it is: a report helps. */
    readonly isLacking?: boolean;
    /** Whether `best` is a part of a result that is too large, and a report would not help. */
    readonly isCapped?: boolean;
    /** Whether `best` may lack objects that the server sends without a report. */
    readonly isDue?: boolean;
}

/** The objects that a device holds for a subscription. Each subclass defines the test of its kind. */
export abstract class Region {
    anchor: Point = { xM: 0, yM: 0 };
    readonly buffer = new Map<bigint, Buffered>();

    /** Apply the objects of a delta. The ids in `drop` need not be held any more. */
    hold(anchor: Point, add: Iterable<Buffered>, drop: Iterable<bigint>): void {
        this.anchor = anchor;
        for (const objectId of drop) this.buffer.delete(objectId);
        for (const entry of add) this.buffer.set(entry.objectId, entry);
    }

    /** Drop the objects that have expired by now and return their ids. */
    forgetExpired(nowMs: number): bigint[] {
        const gone = [...this.buffer.values()]
            .filter((one) => one.expiryMs <= nowMs)
            .map((one) => one.objectId);
        for (const objectId of gone) this.buffer.delete(objectId);
        return gone;
    }

    /**
     * Return the objects in the result at a position, and whether they are the whole result.
     *
     * `uncertaintyM` is the largest distance of the device from this position.
     */
    abstract evaluate(xM: number, yM: number, nowMs: number, uncertaintyM?: number): Evaluation;
}

/** Return the radius of a circle about the evaluated position that lies inside the region. */
export function inscribedRadiusM(evaluation: Evaluation): number {
    return Math.max(0, evaluation.marginM / 2);
}
