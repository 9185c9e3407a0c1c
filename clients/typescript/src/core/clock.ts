/** Server time on a device: real time never runs backwards; virtual time stands still until it is set. */

/** Timers that are late by less than this count as on time. */
export const LEAP_MS = 100;

/** Server time: a clock of the device that never jumps plus an offset, or virtual time. */
export class Clock {
    isVirtual = false;
    /** Called when time has jumped ahead: timers may be late. */
    onLeap: () => void = () => {};
    readonly #steady: () => number;
    #offsetMs = 0;
    #latestMs = 0;
    #emittedOffsetMs = 0;

    /** `steady` returns whole milliseconds of a clock that never jumps. */
    constructor(steady: () => number = steadyClockMs) {
        this.#steady = steady;
    }

    /** Set the time from a welcome. */
    adjust(serverMs: number, isVirtual: boolean): void {
        this.isVirtual = isVirtual;
        this.#offsetMs = serverMs - this.#steady();
        this.#reach(serverMs);
    }

    /** Record that the server's clock has reached a time, and continue from there. */
    observe(serverMs: number): void {
        this.#offsetMs = Math.max(this.#offsetMs, serverMs - this.#steady());
        this.#reach(serverMs);
    }

    /** Return server time in milliseconds. */
    nowMs(): number {
        if (!this.isVirtual) this.#latestMs = Math.max(this.#latestMs, this.#steady() + this.#offsetMs);
        return this.#latestMs;
    }

    /** Return milliseconds of a clock that never jumps at a welcome; virtual if time is virtual. */
    steadyMs(): number {
        return this.isVirtual ? this.#latestMs : this.#steady();
    }

    #reach(serverMs: number): void {
        const hasLeaped = this.isVirtual
            ? serverMs > this.#latestMs
            : this.#offsetMs >= this.#emittedOffsetMs + LEAP_MS;
        this.#latestMs = Math.max(this.#latestMs, serverMs);
        if (hasLeaped || this.#offsetMs < this.#emittedOffsetMs) this.#emittedOffsetMs = this.#offsetMs;
        if (hasLeaped) this.onLeap();
    }
}

/**
 * Return whole milliseconds of the platform's monotonic clock.
 *
 * It may stand still while a phone sleeps. The next welcome or delta sets the time again.
 */
function steadyClockMs(): number {
    return Math.floor(performance.now());
}
