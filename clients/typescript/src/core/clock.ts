/** Server time on a device: real time never runs backwards; virtual time stands still until it is set. */

/** Timers that are late by less than this count as on time. */
export const LEAP_MS = 100;
/** If the wall clock has advanced by more than this beyond the steady one, the device has slept. */
const SLEEP_MS = 1000;

/** Server time: a clock of the device that never jumps plus an offset, or virtual time. */
export class Clock {
    isVirtual = false;
    /** Called when time has jumped ahead: timers may be late. */
    onLeap: () => void = () => {};
    /** Called when the device has slept, or its wall clock was corrected: another welcome is needed. */
    onSleep: () => void = () => {};
    readonly #steady: () => number;
    readonly #wall: () => number;
    /** By how much the wall clock was ahead of the steady one. */
    #aheadMs: number;
    /** Time that the steady clock has missed, at most. */
    #sleptMs = 0;
    #hasSlept = false;
    #offsetMs = 0;
    #latestMs = 0;
    #emittedOffsetMs = 0;

    /**
     * `steady` returns whole milliseconds of a clock that never jumps. `wall` returns those of one that
     * goes on while the device sleeps; by default that of the platform if `steady` is.
     */
    constructor(
        steady: () => number = steadyClockMs,
        wall: () => number = steady === steadyClockMs ? () => Date.now() : steady,
    ) {
        this.#steady = steady;
        this.#wall = wall;
        this.#aheadMs = wall() - steady();
    }

    /** Set the time from a welcome. It may be from before a sleep that is noticed only now. */
    adjust(serverMs: number, isVirtual: boolean): void {
        this.#hasSlept = this.#look();
        this.isVirtual = isVirtual;
        this.#offsetMs = serverMs - this.#steady();
        this.#reach(serverMs);
    }

    /** Record that the server's clock has reached a time, and continue from there. */
    observe(serverMs: number): void {
        this.#offsetMs = Math.max(this.#offsetMs, serverMs - this.#steady());
        this.#reach(serverMs);
    }

    /**
     * Whether the device has slept since the last welcome: objects may have expired that `nowMs` does not
     * count as such.
     */
    get hasSlept(): boolean {
        this.#look();
        return this.#hasSlept;
    }

    /** Return server time in milliseconds. */
    nowMs(): number {
        this.#look();
        if (!this.isVirtual) this.#latestMs = Math.max(this.#latestMs, this.#steady() + this.#offsetMs);
        return this.#latestMs;
    }

    /**
     * Return milliseconds of a clock that never jumps at a welcome, and goes on while the device sleeps;
     * virtual if time is virtual.
     */
    steadyMs(): number {
        this.#look();
        return this.isVirtual ? this.#latestMs : this.#steady() + this.#sleptMs;
    }

    /** Return whether the device has slept since the last call; it is noticed in real time only. */
    #look(): boolean {
        const aheadMs = this.#wall() - this.#steady();
        const sleptMs = aheadMs - this.#aheadMs;
        const isNews = !this.isVirtual && sleptMs > SLEEP_MS;
        if (isNews || this.isVirtual || sleptMs < 0) this.#aheadMs = aheadMs;
        if (!isNews) return false;
        this.#sleptMs += sleptMs;
        this.#hasSlept = true;
        this.onSleep();
        return true;
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

/** Return whole milliseconds of the platform's monotonic clock, which may stand still in a sleep. */
function steadyClockMs(): number {
    return Math.floor(performance.now());
}
