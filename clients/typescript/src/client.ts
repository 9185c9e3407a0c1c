/** Client: a server or a gateway, and the devices on it. */

import { create } from "@bufbuild/protobuf";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { Clock } from "./core/clock.js";
import { DeviceSession } from "./core/device_session.js";
import { ClosedError, NearcastError, RefusedError, forgotten, invalid } from "./core/errors.js";
import { Location } from "./core/location.js";
import type { Fix } from "./core/location.js";
import { liveObject } from "./core/model.js";
import type { Match } from "./core/model.js";
import { finite, notNegative } from "./core/numbers.js";
import { writeSpec } from "./core/specs.js";
import type { Spec } from "./core/specs.js";
import { Deferred, throwIfAborted, unlessAborted } from "./core/waiting.js";
import { Device } from "./device.js";
import { ATTACH, CONNECT, requireFields, requireSpec } from "./fields.js";
import { OBJECTS_MAX, writeObject, writeRetraction } from "./publishing.js";
import type { NewObject, Retraction } from "./publishing.js";
import { FORGET, PUBLISH, RETRACT, SEARCH } from "./transport/calls.js";
import type { Call } from "./transport/calls.js";
import { DeviceStream } from "./transport/device_stream.js";
import { PRINTABLE, currentToken, strippedToken } from "./transport/transport.js";
import type { TokenSource, Transport } from "./transport/transport.js";
import { WebSocketTransport } from "./transport/websocket.js";
import type { WebSocketConstructor } from "./transport/websocket.js";

const NONCE_BYTES = 16;
/** Longest pause between two attempts to attach a device that another instance uses. */
const PAUSE_MS = 5000;
/** Added to the time that the server gives: it notices and detaches within this time. */
const SLACK_MS = 1000;
/** Pause of `sync` for a device that reconnects. */
const OFFLINE_PAUSE_MS = 20;

/** Settings of a client. */
export interface ConnectOptions {
    /** Token of this client, or a function that returns a valid one whenever a stream starts. */
    readonly token?: TokenSource;
    /** Constructor of WebSockets; that of the platform by default. */
    readonly webSocket?: WebSocketConstructor;
    /** Whether to send a token without encryption to another machine, where others can read it. */
    readonly insecure?: boolean;
}

/** Settings of a device. */
export interface AttachOptions extends Fix {
    /** The SDK sends positions that are blurred by up to this distance; 0, the default, for none. */
    readonly privacyRadiusM?: number;
    /** Distance from the edge of a safe region at which the device already reports. */
    readonly prefetchM?: number;
    /** Whether to replace another instance that is attached. */
    readonly takeOver?: boolean;
    /** Time to wait for another instance to be detached; the time that the server gives by default. */
    readonly waitMs?: number;
    /** Ends the wait. */
    readonly signal?: AbortSignal;
}

/** A connection to a server. `connect` creates it. */
export class Client {
    readonly #transport: Transport;
    readonly #token: TokenSource;
    readonly #clock = new Clock();
    readonly #streams = new Set<DeviceStream>();
    #isClosed = false;

    /** @internal */
    constructor(transport: Transport, token: TokenSource) {
        this.#transport = transport;
        this.#token = token;
        // After the device that has set the clock is done.
        this.#clock.onLeap = () => queueMicrotask(() => this.#passTime());
        this.#clock.onSleep = () => queueMicrotask(() => this.#wokenUp());
    }

    /**
     * Attach a device on a stream of its own; resolve when it is online.
     *
     * A device has one instance of the app at a time. If another instance is attached, this one replaces
     * it at once if the token is the token of this device, or with `takeOver`. Otherwise the SDK waits
     * until the other one is detached.
     */
    async attach(deviceId: string, options: AttachOptions): Promise<Device> {
        requireFields(options, "options", ATTACH);
        const startMs = performance.now();
        // One for all attempts: each location draws a blurred position of its own.
        const location = new Location(options, options.privacyRadiusM);
        let allowedMs = options.waitMs === undefined ? undefined : notNegative(options.waitMs, "waitMs");
        for (;;) {
            try {
                return await this.#attach(deviceId, location, options);
            } catch (error) {
                if (!isInUse(error)) throw error;
                allowedMs ??= error.retryAfterMs + SLACK_MS;
                const leftMs = allowedMs - (performance.now() - startMs);
                if (leftMs <= 0) throw error;
                await pause(Math.min(error.retryAfterMs, PAUSE_MS, leftMs), options.signal);
            }
        }
    }

    async #attach(
        deviceId: string,
        location: Location,
        { prefetchM, takeOver, signal }: AttachOptions,
    ): Promise<Device> {
        this.#requireOpen();
        throwIfAborted(signal);
        const stream = new DeviceStream(this.#transport, this.#token);
        const session = new DeviceSession({
            deviceId,
            nonce: crypto.getRandomValues(new Uint8Array(NONCE_BYTES)),
            clock: this.#clock,
            send: stream.send,
            location,
            prefetchM,
            takeOver,
        });
        this.#streams.add(stream);
        session.onEnd = () => this.#streams.delete(stream);
        try {
            await stream.start(session, signal);
        } catch (error) {
            await stream.close();
            throw error;
        }
        return new Device(session, stream);
    }

    /**
     * Publish objects, at most 1,000, or one object; return their ids when they are on the server's disk.
     *
     * The call is not repeated. If the connection breaks before the response (an `UnavailableError`), the
     * objects may have been published: give each a `key`, and publish them again.
     */
    async publish(
        objects: NewObject | readonly NewObject[],
        options: { signal?: AbortSignal } = {},
    ): Promise<bigint[]> {
        const listed = isArray(objects) ? objects : [objects];
        if (listed.length < 1 || listed.length > OBJECTS_MAX) {
            throw invalid("objects", `${listed.length} objects`, `1 to ${OBJECTS_MAX} objects`);
        }
        const messages = listed.map((object, i) => writeObject(object, `objects[${i}]`));
        const request = create(PUBLISH.request, { objects: messages });
        const response = await this.#call(PUBLISH, request, options.signal);
        const error = response.error ?? response.goAway?.error;
        if (error !== undefined) throw RefusedError.fromWire(error);
        return response.ids;
    }

    /** Retract objects by their ids, and by the keys of this publisher; all or none. */
    async retract(objects: Retraction, options: { signal?: AbortSignal } = {}): Promise<void> {
        await this.#call(RETRACT, writeRetraction(objects), options.signal);
    }

    /**
     * Return the result that a subscription would have at one place, now.
     *
     * The SDK sends the exact place to the server: see also `Device.search`.
     */
    async search(
        spec: Spec,
        place: { readonly lon: number; readonly lat: number },
        options: { signal?: AbortSignal } = {},
    ): Promise<Match[]> {
        requireSpec(spec);
        const position = { lon: finite(place?.lon, "lon"), lat: finite(place?.lat, "lat") };
        const request = create(SEARCH.request, { spec: writeSpec(spec), position });
        const { matches } = await this.#call(SEARCH, request, options.signal);
        return matches.map(({ object, score, distanceM }) => {
            if (object === undefined) throw new NearcastError("a match of the server has no object");
            return { object: liveObject(object), score, distanceM };
        });
    }

    /**
     * Delete all data of a device on the server permanently; return its number of subscriptions.
     *
     * The deletion is durable when the promise resolves. For an unknown device the server deletes nothing.
     * If the device is attached, here or elsewhere, the server detaches it, and its subscriptions end with
     * the reason FORGOTTEN. If it attaches again later, it is a new device.
     */
    async forgetDevice(deviceId: string, options: { signal?: AbortSignal } = {}): Promise<number> {
        const forget = async () => {
            const request = create(FORGET.request, { deviceId });
            return (await this.#call(FORGET, request, options.signal)).subscriptionCount;
        };
        const count = await forget();
        const carrying = [...this.#streams].filter(({ session }) => session.deviceId === deviceId);
        if (carrying.length === 0) return count;
        const error = forgotten();
        await Promise.all(carrying.map((stream) => stream.close(error)));
        // The device may have reconnected and subscribed since the server forgot it.
        return count + (await forget());
    }

    async #call<Request extends DescMessage, Response extends DescMessage>(
        call: Call<Request, Response>,
        request: MessageShape<Request>,
        signal: AbortSignal | undefined,
    ): Promise<MessageShape<Response>> {
        this.#requireOpen();
        throwIfAborted(signal);
        if (this.#transport.call === undefined) {
            throw new NearcastError("this transport is for devices alone: it makes no calls");
        }
        const token = await unlessAborted(currentToken(this.#token), signal);
        this.#requireOpen();
        return this.#transport.call(call, request, token, signal);
    }

    #requireOpen(): void {
        if (this.#isClosed) throw new ClosedError("the client is closed");
    }

    #wokenUp(): void {
        if (!this.#isClosed) this.networkChanged();
    }

    /** Reconnect at once. Call it when the phone has changed its network, or has woken up. */
    networkChanged(): void {
        this.#requireOpen();
        this.#transport.renew();
        for (const stream of this.#streams) stream.rebuild();
    }

    /**
     * Wait until no message is in transit: for tests.
     *
     * It resolves when the devices of this client have received everything that the server had sent them,
     * and none of them waits for a response. The deltas that a publication causes are sent some time
     * after its response; the server's `Sync` waits for them.
     */
    async sync(): Promise<void> {
        const sessions = () => [...this.#streams].map(({ session }) => session);
        do {
            await Promise.all(sessions().map(pong));
        } while (sessions().some((session) => session.isWaiting));
    }

    /** Follow the virtual time of a server (`--virtual-time`), which a test has set to `timeMs`. */
    observeTime(timeMs: number): void {
        this.#clock.isVirtual = true;
        this.#clock.observe(timeMs);
        this.#passTime();
    }

    /** Detach all devices and close the connection. Later calls throw a `ClosedError`. */
    async close(): Promise<void> {
        this.#isClosed = true;
        const error = new ClosedError("the client is closed");
        await Promise.all([...this.#streams].map((stream) => stream.close(error)));
        this.#transport.close();
    }

    #passTime(): void {
        for (const { session } of this.#streams) session.passTime();
    }
}

/**
 * Return a client of a gateway, such as `wss://near.example`, or of another transport.
 *
 * With several gateways the client uses one of them, and another one when it cannot be reached.
 * Nothing is sent before a device is attached.
 */
export function connect(
    target: string | readonly string[] | Transport,
    options: ConnectOptions = {},
): Client {
    requireFields(options, "options", CONNECT);
    const { token = "", webSocket, insecure = false } = options;
    if (typeof token === "string" && strippedToken(token) === undefined) {
        const refusal = { field: "token", value: "not shown", limit: `a ${PRINTABLE}` };
        throw new RefusedError({ reason: "INVALID_FIELD", ...refusal });
    }
    const transport = isAddress(target) ? new WebSocketTransport(target, webSocket) : target;
    if (token !== "" && !transport.isConfidential && !insecure) {
        const limit = "wss: without, others could read the token on the way; insecure: true sends it so";
        throw invalid("target", target, limit);
    }
    return new Client(transport, token);
}

function isAddress(target: string | readonly string[] | Transport): target is string | readonly string[] {
    return typeof target === "string" || Array.isArray(target);
}

function isArray(objects: NewObject | readonly NewObject[]): objects is readonly NewObject[] {
    return Array.isArray(objects);
}

/** Resolve at the pong to a ping, or when the stream breaks; without a stream, after a short pause. */
async function pong(session: DeviceSession): Promise<void> {
    if (!session.isOnline) return pause(OFFLINE_PAUSE_MS);
    const arrived = new Deferred();
    session.ping(() => arrived.resolve());
    await arrived.promise;
}

function isInUse(error: unknown): error is RefusedError {
    return error instanceof RefusedError && error.reason === "DEVICE_IN_USE" && error.retryAfterMs > 0;
}

async function pause(ms: number, signal?: AbortSignal): Promise<void> {
    const elapsed = new Deferred();
    const timer = setTimeout(() => elapsed.resolve(), ms);
    try {
        await unlessAborted(elapsed.promise, signal);
    } finally {
        clearTimeout(timer);
    }
}
