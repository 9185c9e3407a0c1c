/** The time for which an object has matched without a miss. See `nearcast/protocol/dwell.py`. */

import type { Point } from "./frame.js";
import type { FixedRegion } from "./ranges.js";

/** Number of kept positions. The time of an object that arrives later starts at the first of them. */
export const POSITIONS_MAX = 256;

/** Times of creation of objects, by id. */
export type CreatedMs = (objectId: bigint) => number;

/** Start times of the matches of one buffer. Another instance of the app starts them again. */
export class DwellTimers {
    readonly #positions: [timeMs: number, point: Point][] = [];
    #since = new Map<bigint, number>();
    /** Server time up to which the ends of dwell times have been reported. */
    #emittedMs = 0;

    constructor(
        readonly dwellMs: number,
        readonly region: FixedRegion,
    ) {}

    /** Record a position. */
    move(nowMs: number, point: Point, createdMs: CreatedMs): void {
        this.#keep(nowMs, point);
        const since = new Map<bigint, number>();
        for (const one of this.region.buffer.keys()) {
            if (this.region.matches(one, point.xM, point.yM)) {
                since.set(one, this.#since.get(one) ?? Math.max(createdMs(one), nowMs));
            }
        }
        this.#since = since;
    }

    /** Record the changes that a delta made to the buffer. */
    hold(nowMs: number, point: Point, createdMs: CreatedMs, added: Iterable<bigint>): void {
        if (this.#positions.length === 0) this.#keep(nowMs, point);
        const { buffer } = this.region;
        for (const one of [...this.#since.keys()]) if (!buffer.has(one)) this.#since.delete(one);
        for (const one of added) {
            if (!buffer.has(one) || this.#since.has(one)) continue;
            const startedMs = this.#startedMs(one);
            if (startedMs !== undefined) this.#since.set(one, Math.max(createdMs(one), startedMs));
        }
    }

    #keep(nowMs: number, point: Point): void {
        this.#positions.push([nowMs, point]);
        if (this.#positions.length > POSITIONS_MAX) this.#positions.shift();
    }

    /** Return the time of the first position since which an object matches; undefined if it does not. */
    #startedMs(objectId: bigint): number | undefined {
        let found: number | undefined;
        for (let i = this.#positions.length - 1; i >= 0; i -= 1) {
            const [timeMs, point] = this.#positions[i] as [number, Point];
            if (!this.region.matches(objectId, point.xM, point.yM)) break;
            found = timeMs;
        }
        return found;
    }

    /** Drop the start times of objects that have expired. */
    forget(objectIds: Iterable<bigint>): void {
        for (const one of objectIds) this.#since.delete(one);
    }

    /** Return whether an object has matched for the dwell time. */
    isOver(objectId: bigint, nowMs: number): boolean {
        const sinceMs = this.#since.get(objectId);
        return sinceMs !== undefined && nowMs - sinceMs >= this.dwellMs;
    }

    /** Return the server time of the next end of a dwell time that is not reported; 0 for never. */
    nextMs(): number {
        let next = Infinity;
        for (const sinceMs of this.#since.values()) {
            const endMs = sinceMs + this.dwellMs;
            if (endMs > this.#emittedMs) next = Math.min(next, endMs);
        }
        return next === Infinity ? 0 : next;
    }

    /** Advance to a time; return whether any dwell time has ended since the last call. */
    passTime(nowMs: number): boolean {
        const nextMs = this.nextMs();
        this.#emittedMs = Math.max(this.#emittedMs, nowMs);
        return nextMs > 0 && nextMs <= nowMs;
    }
}
