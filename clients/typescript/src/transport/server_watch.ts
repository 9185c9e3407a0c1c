/** Detects that the server does not respond although a response is due and the connection is open. */

const SILENCE_MS = 4000;
/** If a timer is later than this, the app delayed it, and may not have read messages that arrived. */
const LATE_MS = 1000;

export class ServerWatch {
    #timer: ReturnType<typeof setTimeout> | undefined;
    /** Start of the wait for a response; undefined if none is due. */
    #requestedMs: number | undefined;
    #arrivedMs = 0;
    #isSilent = false;

    /**
     * `isDue` is whether a response is due; `onChange` is called when the server becomes silent, or
     * responds.
     */
    constructor(
        readonly isDue: () => boolean,
        readonly onChange: (isSilent: boolean) => void,
    ) {}

    /** Record that a request with a response was sent. */
    requested(): void {
        this.#requestedMs ??= performance.now();
        if (this.#timer === undefined && !this.#isSilent) this.#start(SILENCE_MS);
    }

    /** Record that a message of any kind has arrived. */
    arrived(): void {
        this.#arrivedMs = performance.now();
        if (!this.#isSilent) return;
        this.#isSilent = false;
        this.onChange(false);
        if (this.isDue()) this.#start(SILENCE_MS);
    }

    /** Record that a message was processed, which may be the response that was due. */
    responded(): void {
        if (this.#requestedMs !== undefined && !this.isDue()) this.#requestedMs = undefined;
    }

    /** Reset the state: the stream has ended. */
    clear(): void {
        clearTimeout(this.#timer);
        this.#timer = undefined;
        this.#requestedMs = undefined;
        this.#isSilent = false;
    }

    #start(delayMs: number): void {
        const dueMs = performance.now() + delayMs;
        this.#timer = setTimeout(() => this.#look(dueMs), delayMs);
    }

    /** Decide whether the server is silent, or set the timer for the next check. */
    #look(dueMs: number): void {
        this.#timer = undefined;
        if (!this.isDue()) this.#requestedMs = undefined;
        if (this.#requestedMs === undefined) return;
        const nowMs = performance.now();
        if (nowMs - dueMs > LATE_MS) this.#arrivedMs = nowMs;
        const leftMs = Math.max(this.#arrivedMs, this.#requestedMs) + SILENCE_MS - nowMs;
        if (leftMs > 1) {
            this.#start(leftMs);
            return;
        }
        this.#isSilent = true;
        this.onChange(true);
    }
}
