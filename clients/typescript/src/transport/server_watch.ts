/**
 * Detects that the server does not respond although a response is due.
 *
 * After `SILENCE_MS` it counts as silent until a message arrives. After `LOST_MS` it counts as lost: the
 * server, or the way to it, has vanished. If it has responded on this stream, that takes `STUCK_MS`: a large
 * message may be on its way over a slow network.
 */

const SILENCE_MS = 4000;
/** A busy server is silent for some seconds; a handshake on a slow network takes ten. */
const LOST_MS = 19_000;
/** A gateway ends a connection that takes a minute to accept a message. */
const STUCK_MS = 75_000;
/** If a timer is later than this, the app delayed it, and may not have read messages that arrived. */
const LATE_MS = 1000;
const ROUNDING_MS = 1;

export class ServerWatch {
    #timer: ReturnType<typeof setTimeout> | undefined;
    /** Start of the wait for a response; undefined if none is due. */
    #requestedMs: number | undefined;
    #arrivedMs = 0;
    #isSilent = false;
    #hasResponded = false;

    /**
     * `isDue` is whether a response is due; `onChange` is called when the server becomes silent, or
     * responds; `onLost` when it counts as lost.
     */
    constructor(
        readonly isDue: () => boolean,
        readonly onChange: (isSilent: boolean) => void,
        readonly onLost: () => void,
    ) {}

    /** Record that a response is due from now on: to a request, or to the opening of the stream. */
    requested(): void {
        this.#requestedMs ??= performance.now();
        if (this.#timer === undefined) this.#start(SILENCE_MS);
    }

    /** Record that a message of any kind has arrived. */
    arrived(): void {
        this.#arrivedMs = performance.now();
        this.#hasResponded = true;
        if (!this.#isSilent) return;
        this.#isSilent = false;
        this.onChange(false);
        this.#stop();
        if (this.isDue()) this.#start(SILENCE_MS);
    }

    /** Record that a message was processed, which may be the response that was due. */
    responded(): void {
        if (this.#requestedMs !== undefined && !this.isDue()) this.#requestedMs = undefined;
    }

    /** Reset the state: the stream has ended. */
    clear(): void {
        this.#stop();
        this.#requestedMs = undefined;
        this.#isSilent = false;
        this.#hasResponded = false;
    }

    get #lostMs(): number {
        return this.#hasResponded ? STUCK_MS : LOST_MS;
    }

    #stop(): void {
        clearTimeout(this.#timer);
        this.#timer = undefined;
    }

    #start(delayMs: number): void {
        const dueMs = performance.now() + delayMs;
        this.#timer = setTimeout(() => this.#look(dueMs), delayMs);
    }

    /** Decide whether the server is silent or lost, and set the timer for the next check. */
    #look(dueMs: number): void {
        this.#timer = undefined;
        if (!this.isDue()) this.#requestedMs = undefined;
        if (this.#requestedMs === undefined) return;
        const nowMs = performance.now();
        if (nowMs - dueMs > LATE_MS) this.#arrivedMs = nowMs;
        const sinceMs = Math.max(this.#arrivedMs, this.#requestedMs);
        const leftMs = sinceMs + (this.#isSilent ? this.#lostMs : SILENCE_MS) - nowMs;
        if (leftMs > ROUNDING_MS) {
            this.#start(leftMs);
        } else if (this.#isSilent) {
            this.onLost();
        } else {
            this.#isSilent = true;
            this.#start(this.#lostMs - SILENCE_MS);
            this.onChange(true);
        }
    }
}
