/** Detects that the server does not respond although a response is due and the connection is open. */

const SILENCE_MS = 4000;
/** If a timer is later than this, the app delayed it, and may not have read messages that arrived. */
const LATE_MS = 1000;

export class ServerWatch {
    #timer: ReturnType<typeof setTimeout> | undefined;
    /** Start of the wait, or the last arrival; 0 if nothing is due. */
    #sinceMs = 0;
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
        if (this.#timer === undefined && !this.#isSilent) this.#start(SILENCE_MS);
    }

    /** Record that a message of any kind has arrived. */
    arrived(): void {
        this.#sinceMs = performance.now();
        if (!this.#isSilent) return;
        this.#isSilent = false;
        this.onChange(false);
        if (this.isDue()) this.#start(SILENCE_MS);
    }

    /** Reset the state: the stream has ended. */
    clear(): void {
        clearTimeout(this.#timer);
        this.#timer = undefined;
        this.#isSilent = false;
    }

    #start(delayMs: number): void {
        if (this.#timer === undefined) this.#sinceMs = performance.now() + delayMs - SILENCE_MS;
        const dueMs = performance.now() + delayMs;
        this.#timer = setTimeout(() => this.#look(dueMs), delayMs);
    }

    /** Decide whether the server is silent, or set the timer for the next check. */
    #look(dueMs: number): void {
        this.#timer = undefined;
        if (!this.isDue()) return;
        const nowMs = performance.now();
        if (nowMs - dueMs > LATE_MS) this.#sinceMs = nowMs;
        const leftMs = this.#sinceMs + SILENCE_MS - nowMs;
        if (leftMs > 1) {
            this.#start(leftMs);
            return;
        }
        this.#isSilent = true;
        this.onChange(true);
    }
}
