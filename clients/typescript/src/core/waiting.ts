/** Waiting in one place for what happens in another. */

/** A promise that is settled from outside. Nobody has to wait for it. */
export class Deferred<Value = void> {
    readonly promise: Promise<Value>;
    #resolve!: (value: Value) => void;
    #reject!: (error: Error) => void;

    constructor() {
        this.promise = new Promise((resolve, reject) => {
            this.#resolve = resolve;
            this.#reject = reject;
        });
        this.promise.catch(() => {});
    }

    resolve(value: Value): void {
        this.#resolve(value);
    }

    reject(error: Error): void {
        this.#reject(error);
    }
}

/** An event that is set until somebody has waited for it. */
export class Notice {
    #isSet = false;
    #waiting: Deferred | undefined;

    get isSet(): boolean {
        return this.#isSet;
    }

    set(): void {
        this.#isSet = true;
        this.#waiting?.resolve();
        this.#waiting = undefined;
    }

    /** Return whether it is set, and clear it. */
    take(): boolean {
        const isSet = this.#isSet;
        this.#isSet = false;
        return isSet;
    }

    /** Wait until it is set, and clear it; the signal's reason is thrown if it aborts first. */
    async wait(signal?: AbortSignal): Promise<void> {
        throwIfAborted(signal);
        if (!this.#isSet) {
            this.#waiting ??= new Deferred();
            await unlessAborted(this.#waiting.promise, signal);
        }
        this.#isSet = false;
    }
}

/** Wait for a promise; throw the signal's reason if it aborts first. */
export async function unlessAborted<Value>(
    promise: Promise<Value>,
    signal?: AbortSignal,
): Promise<Value> {
    if (signal === undefined) return promise;
    promise.catch(() => {}); // nobody may be waiting any more when it is rejected
    throwIfAborted(signal);
    const aborted = new Deferred<never>();
    const abort = () => aborted.reject(reasonOf(signal));
    signal.addEventListener("abort", abort);
    try {
        return await Promise.race([promise, aborted.promise]);
    } finally {
        signal.removeEventListener("abort", abort);
    }
}

/** Throw the signal's reason if it has aborted. */
export function throwIfAborted(signal?: AbortSignal): void {
    if (signal?.aborted) throw reasonOf(signal);
}

/** Return the reason of a signal that has aborted. Signals of React Native have none. */
function reasonOf(signal: AbortSignal): Error {
    const reason = signal.reason as Error | undefined;
    return reason ?? Object.assign(new Error("the signal has aborted"), { name: "AbortError" });
}
