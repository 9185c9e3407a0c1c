/** A device: its position and its subscriptions. */

import { invalid } from "./core/errors.js";
import type { DeviceSession } from "./core/device_session.js";
import type { Frame } from "./core/frame.js";
import type { Fix } from "./core/location.js";
import type { Counters, Geofence, Match } from "./core/model.js";
import type { Motion } from "./core/request_sender.js";
import type { Spec } from "./core/specs.js";
import { whenDecided } from "./core/subscription.js";
import type { Subscription } from "./core/subscription.js";
import { throwIfAborted, unlessAborted } from "./core/waiting.js";
import { SUBSCRIBE, requireFields, requireSpec } from "./fields.js";
import type { DeviceStream } from "./transport/device_stream.js";

/** Settings of a subscription. */
export interface SubscribeOptions {
    /** Name under which an app that starts again continues the subscription. */
    readonly name?: string | undefined;
    /** Ends the wait for the first result. */
    readonly signal?: AbortSignal | undefined;
}

/** A device attached to the server. `Client.attach` creates it. */
export class Device {
    readonly #session: DeviceSession;
    readonly #stream: DeviceStream;

    /** @internal */
    constructor(session: DeviceSession, stream: DeviceStream) {
        this.#session = session;
        this.#stream = stream;
    }

    /** Name of the device on the server. */
    get id(): string {
        return this.#session.deviceId;
    }

    /** Service area of the server and its projection. */
    get frame(): Frame {
        return this.#session.frame;
    }

    /**
     * Offset in the log of the cluster up to which the server has applied it, while the server lags; else 0.
     *
     * In the state "lagging", results are those of all objects in the log up to this offset at least.
     */
    get lagOffset(): bigint {
        return this.#session.lagOffset;
    }

    /** Numbers of moves, reports, deltas, received objects, and bytes in each direction. */
    get counters(): Readonly<Counters> {
        return this.#session.counters;
    }

    /** The error that has ended the device; undefined while it lives. */
    get error(): Error | undefined {
        return this.#session.error;
    }

    /**
     * Latest reason for which the device is offline; undefined while it is online, or if none is known.
     *
     * It is the error with which the stream broke, or the last attempt to open another one failed. If the
     * device has ended, it is the error that has ended it.
     */
    get offlineError(): Error | undefined {
        return this.#session.offlineError;
    }

    /** Subscriptions of the device, including those that an earlier instance of the app started. */
    get subscriptions(): Subscription[] {
        return [...this.#session.subscriptions.values()];
    }

    /**
     * Start a subscription, or continue the one of that name; return it with its first result.
     *
     * Subscriptions are durable. An app that subscribes under a name each time it starts continues the
     * subscription of that name, and changes it in place if it has another spec. The result is that of
     * the present place: after a start at another place the call waits for the response to its report.
     * Without a stream it waits for one, unless the device already holds a result of that name and spec:
     * the last known result. If the signal aborts, the caller stops waiting; the subscription goes on.
     */
    async subscribe(spec: Spec, options: SubscribeOptions = {}): Promise<Subscription> {
        requireSpec(spec);
        requireFields(options, "options", SUBSCRIBE);
        throwIfAborted(options.signal);
        const subscription = this.#session.subscribe(spec, options.name ?? "");
        await unlessAborted(subscription.answered(), options.signal);
        return subscription;
    }

    /** Set a new position. The device checks it locally, and reports only if it left a safe region. */
    move(fix: Fix & Motion): void {
        this.#session.move(fix, fix);
        this.#stream.wakeLater();
    }

    /** Return the result of a spec at the device's position, now, without a lasting subscription. */
    async search(spec: Spec, options: { signal?: AbortSignal } = {}): Promise<Match[]> {
        requireSpec(spec);
        throwIfAborted(options.signal);
        const wanted = spec.kind === "boolean" ? { ...spec, dwellMs: 0 } : spec;
        const subscription = this.#session.subscribe(wanted);
        try {
            return await whenDecided(
                subscription,
                (state) => {
                    const isVague = state === "too many" && !this.#session.location.isExact;
                    if (state === "too vague" || isVague) throw this.#tooVague();
                    return subscription.results();
                },
                options.signal,
            );
        } finally {
            this.#session.unsubscribe(subscription); // does not wait for the server's response
        }
    }

    #tooVague(): Error {
        const { isPrivate, privacyRadiusM, accuracyM } = this.#session.location;
        const limit = "small enough for the server to cover it: it sends only so many objects";
        return isPrivate
            ? invalid("privacyRadiusM", privacyRadiusM, limit)
            : invalid("accuracyM", accuracyM, limit);
    }

    /**
     * Return a circle about the device within which it has nothing to report.
     *
     * It is valid until `untilMs`, and until an object enters or leaves a result.
     */
    geofence(): Geofence {
        this.#session.requireOpen();
        return this.#session.geofence();
    }

    /**
     * Return the milliseconds for which the device need not even look where it is.
     *
     * At `vMaxMps` metres a second at most, it cannot leave its safe regions until then, so it has
     * nothing to report. What the app shows in the meantime is the result at the last fix. The time ends
     * at the latest when a held object ends. Call the method again after each change of a result and
     * after each fix.
     */
    nextFixIn(vMaxMps: number): number {
        this.#session.requireOpen();
        return this.#session.nextFixMs(vMaxMps);
    }

    /** Detach from the server. The server keeps the subscriptions until the next attach. */
    async detach(): Promise<void> {
        await this.#stream.close();
    }
}
