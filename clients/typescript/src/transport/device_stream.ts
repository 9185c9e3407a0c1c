/**
 * The stream of one device. It is opened again when it breaks.
 *
 * The session continues with the objects that it holds and resumes on the next stream. A device that was
 * never online fails at once if no server can be reached, unless one reports that it will be back.
 */

import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ELSEWHERE } from "../core/device_session.js";
import type { DeviceSession } from "../core/device_session.js";
import {
    ClosedError,
    NearcastError,
    RefusedError,
    StreamError,
    UnavailableError,
} from "../core/errors.js";
import type { Reason } from "../core/errors.js";
import { Deferred, Notice } from "../core/waiting.js";
import {
    AttachRequestSchema,
    AttachResponseSchema,
    Rejection_Command,
} from "../generated/nearcast/v1/device_service_pb.js";
import type { AttachRequest, AttachResponse } from "../generated/nearcast/v1/device_service_pb.js";
import { ServerWatch } from "./server_watch.js";
import { currentToken } from "./transport.js";
import type { Stream, TokenSource, Transport } from "./transport.js";

const BACKOFF_FIRST_MS = 100;
const BACKOFF_MAX_MS = 5000;
/** Time to wait for a server that reports that it is stopping or starting. */
const PATIENCE_MS = 60_000;
/** Time to wait until the server ends a stream, before the client cancels it. */
const GOODBYE_MS = 1000;
/** The longest delay that timers of the platforms accept. */
const DELAY_MS_MAX = 2 ** 31 - 1;

const UNWELCOME: readonly Reason[] = ["UNAUTHENTICATED", "TOKEN_EXPIRED", "PERMISSION_DENIED"];

export class DeviceStream {
    session!: DeviceSession;
    readonly #changed = new Notice();
    readonly #rebuilt = new Notice();
    readonly #watch: ServerWatch;
    #stream: Stream | undefined;
    /** Settled with the reason for the end of the stream, or of the attempt to open it. */
    #ended: Deferred<Error> | undefined;
    #isStreaming = false;
    #isClosed = false;
    /** Whether the device has caught up on this stream. */
    #hasCaughtUp = false;
    /** Time of the first welcome on this stream; infinite before. */
    #welcomedMs = Infinity;
    /** Hellos without a response. Earlier messages belong to an earlier conversation. */
    #pendingHellos = 0;
    #goAway: RefusedError | undefined;
    #beatTimer: ReturnType<typeof setTimeout> | undefined;
    #goodbyeTimer: ReturnType<typeof setTimeout> | undefined;
    #expiryTimer: ReturnType<typeof setTimeout> | undefined;
    /** Until then a device that was never online tries again; 0 if the server has not invited it to. */
    #retryUntilMs = 0;
    #retryAfterMs = 0;
    #running: Promise<void> | undefined;

    constructor(
        readonly transport: Transport,
        readonly token: TokenSource,
    ) {
        this.#watch = new ServerWatch(
            () => this.session.isResponseDue,
            (isSilent) => this.session.setResponsive(!isSilent),
            () => this.#stream?.abandon?.(),
        );
    }

    /** Start the stream of a session; resolve when it is online, and throw the error that ended it. */
    async start(session: DeviceSession, signal?: AbortSignal): Promise<void> {
        this.session = session;
        session.onEvent = () => this.#onEvent();
        session.onWelcome = () => this.#onWelcome();
        session.onMoved = (error) => this.#goAwayWith(error);
        this.#running = this.#run();
        while (!session.isOnline) {
            await this.#changed.wait(signal);
            if (session.error !== undefined) throw session.error;
        }
    }

    /** Queue a request for the stream. Drop it if there is none: the next one starts with a hello. */
    readonly send = (request: AttachRequest): void => {
        if (!this.#isStreaming) return;
        const kind = request.command.case;
        if (kind === "hello") this.#pendingHellos += 1;
        const message = toBinary(AttachRequestSchema, request);
        this.session.counters.bytesSent += message.length;
        this.#stream?.send(message);
        if (kind !== "ack") this.#watch.requested();
    };

    /** Drop the stream, or the wait for a token, and open another at once: the network has changed. */
    rebuild(): void {
        this.#rebuilt.set();
        const error = new UnavailableError("the network has changed");
        if (this.#stream === undefined) this.#ended?.resolve(error);
        this.#stream?.cancel();
    }

    /** End the session and its stream; resolve when the server has ended it, or did not in time. */
    async close(
        error: NearcastError = new ClosedError(`device ${this.session.deviceId} has detached`),
    ): Promise<void> {
        this.#isClosed = true;
        if (this.session.error === undefined) this.session.fail(error);
        clearTimeout(this.#expiryTimer);
        if (this.#stream === undefined) this.#ended?.resolve(error);
        this.#endStream();
        this.#rebuilt.set();
        await this.#running;
    }

    // -- the stream ------------------------------------------------------------------------------------

    async #run(): Promise<void> {
        for (let attempt = 1; this.#isAlive; attempt += 1) {
            this.#rebuilt.take();
            this.#retryAfterMs = 0;
            this.#hasCaughtUp = false;
            this.#welcomedMs = Infinity;
            const failure = await this.#streamed();
            if (this.#isAlive) this.session.offlineError = failure;
            this.#interrupt();
            const isLast = attempt >= (this.transport.gatewayCount ?? 1);
            // A stream that `rebuild` has dropped has not failed.
            if (this.#isAlive && !this.#rebuilt.isSet) this.#handleFailure(failure, isLast);
            if (this.#hasServed) attempt = 1;
            if (this.#isAlive) attempt = (await this.#waited(attempt)) ? attempt : 0;
        }
        this.#changed.set();
    }

    get #isAlive(): boolean {
        return !this.#isClosed && this.session.error === undefined;
    }

    /**
     * Whether the waits start again after this stream, with the shortest. A fault that comes back after
     * each welcome must not make the server send the same snapshots again at once.
     */
    get #hasServed(): boolean {
        return this.#hasCaughtUp || performance.now() - this.#welcomedMs > BACKOFF_MAX_MS;
    }

    /** Run one stream until either side breaks or ends it; return the reason. */
    async #streamed(): Promise<Error> {
        const ended = new Deferred<Error>();
        this.#ended = ended;
        this.#goAway = undefined;
        this.#pendingHellos = 0;
        try {
            const token = await Promise.race([currentToken(this.token), ended.promise]);
            if (typeof token !== "string") return token;
            if (this.#isClosed) return new ClosedError("the client is closed");
            if (this.#rebuilt.isSet) return ended.promise; // `rebuild` found no stream to cancel
            this.#stream = this.#opened(token, ended);
            this.#watch.requested(); // the welcome is due
        } catch (error) {
            // Platforms refuse some addresses, such as ws: on a page from https:.
            return error instanceof NearcastError ? error : new UnavailableError(String(error));
        }
        const error = await ended.promise;
        return this.#goAway ?? error;
    }

    #opened(token: string, ended: Deferred<Error>): Stream {
        return this.transport.open(token, {
            onOpen: () => {
                if (this.#isClosed || ended !== this.#ended) return;
                this.#isStreaming = true;
                this.session.connect();
            },
            onMessage: (message) => this.#receive(message, ended),
            onClose: (error) => ended.resolve(error),
        });
    }

    #receive(message: Uint8Array, ended: Deferred<Error>): void {
        if (ended !== this.#ended) return; // it is of an earlier stream
        if (this.#goAway !== undefined || !this.#isAlive) return;
        try {
            const response = decoded(message);
            this.session.counters.bytesReceived += message.length;
            this.#watch.arrived();
            const { event } = response;
            if (event.case === "goAway") this.#goAwayWith(RefusedError.fromWire(event.value.error));
            else if (this.#isCurrent(response)) this.session.receive(response);
            this.#watch.responded();
            this.#hasCaughtUp ||= this.session.isCaughtUp;
            if (this.session.error !== undefined) this.#endStream();
        } catch (error) {
            const failure = reasonToEnd(error);
            // A device that has processed a part of a message must not resume: it may lack objects.
            if (!(failure instanceof StreamError)) this.session.fail(failure);
            ended.resolve(failure);
            this.#stream?.cancel();
        }
    }

    /** Send nothing more on this stream; the device is offline until it reconnects on the next. */
    #goAwayWith(error: RefusedError): void {
        this.#goAway = error;
        if (this.#isAlive) this.session.offlineError = error;
        this.#disconnect();
        this.#endStream();
    }

    /** End the stream; cancel it if the server does not end it in time. */
    #endStream(): void {
        const stream = this.#stream;
        stream?.end();
        clearTimeout(this.#goodbyeTimer);
        this.#goodbyeTimer = stream && setTimeout(() => stream.cancel(), GOODBYE_MS);
    }

    /** Return whether a response is for the last hello. */
    #isCurrent({ event }: AttachResponse): boolean {
        if (this.#pendingHellos === 0) return true;
        const isRefused = event.case === "rejection" && event.value.command === Rejection_Command.HELLO;
        if (event.case !== "welcome" && !isRefused) return false;
        this.#pendingHellos -= 1;
        return this.#pendingHellos === 0;
    }

    /** Process the end of the stream: set the next attempt, or fail the device. */
    #handleFailure(failure: Error, isLast: boolean): void {
        const isInvited = failure instanceof RefusedError && this.#isInvited(failure);
        if (isInvited) {
            this.#retryAfterMs = failure.retryAfterMs;
            this.#retryUntilMs ||= performance.now() + PATIENCE_MS;
        }
        const isUnwelcome = failure instanceof RefusedError && UNWELCOME.includes(failure.reason);
        const isExpired = performance.now() >= this.#retryUntilMs;
        const isTooLate = !this.session.wasOnline && isExpired && (isLast || isInvited);
        if ((isUnwelcome && !isInvited) || isTooLate) {
            this.session.fail(
                failure instanceof NearcastError ? failure : new UnavailableError(failure.message),
            );
        }
    }

    /**
     * Return whether a device may retry after a refusal, for a minute if it was never online.
     *
     * One that was online had a valid token: this server may not have the new keys yet.
     */
    #isInvited({ reason, retryAfterMs }: RefusedError): boolean {
        if (reason === "RATE_LIMITED") return retryAfterMs > 0;
        const isRenewable = typeof this.token !== "string";
        if (reason === "TOKEN_EXPIRED") return isRenewable;
        if (reason === "UNAUTHENTICATED") return isRenewable && this.session.wasOnline;
        return ELSEWHERE.includes(reason);
    }

    /** Wait before the next attempt, with full jitter; return false if `rebuild` has ended the wait. */
    async #waited(attempt: number): Promise<boolean> {
        const mostMs = Math.min(BACKOFF_MAX_MS, BACKOFF_FIRST_MS * 2 ** Math.min(attempt, 30));
        let isElapsed = false;
        const timer = setTimeout(
            () => {
                isElapsed = true;
                this.#rebuilt.set();
            },
            Math.max(this.#retryAfterMs, Math.random() * mostMs),
        );
        await this.#rebuilt.wait();
        clearTimeout(timer);
        return isElapsed;
    }

    /** Record that the stream has ended. */
    #interrupt(): void {
        this.#stream = undefined;
        clearTimeout(this.#goodbyeTimer);
        this.#disconnect();
        this.#changed.set();
    }

    #disconnect(): void {
        this.#isStreaming = false;
        this.#watch.clear();
        clearTimeout(this.#beatTimer);
        if (this.session.error === undefined) this.session.disconnect();
    }

    // -- timers ----------------------------------------------------------------------------------------

    #onWelcome(): void {
        this.#welcomedMs = Math.min(this.#welcomedMs, performance.now());
        this.#beatLater();
    }

    #onEvent(): void {
        this.wakeLater();
        this.#changed.set();
    }

    /** Set a timer for the next expiry in a buffer; the server sends no message for it. */
    wakeLater(): void {
        clearTimeout(this.#expiryTimer);
        const { clock, error } = this.session;
        const expiryMs = this.session.nextExpiryMs();
        if (expiryMs === 0 || clock.isVirtual || error !== undefined) return;
        const delayMs = Math.min(DELAY_MS_MAX, Math.max(0, expiryMs - clock.nowMs()));
        this.#expiryTimer = setTimeout(() => this.session.passTime(), delayMs);
    }

    /** Set a timer for the ping that renews the lease. */
    #beatLater(): void {
        clearTimeout(this.#beatTimer);
        const { clock, leaseMs, beatDueMs } = this.session;
        if (leaseMs === 0 || clock.isVirtual) return;
        const delayMs = Math.min(DELAY_MS_MAX, Math.max(0, beatDueMs - clock.steadyMs()));
        this.#beatTimer = setTimeout(() => {
            this.session.beat();
            if (this.session.isOnline) this.#beatLater();
        }, delayMs);
    }
}

function decoded(message: Uint8Array): AttachResponse {
    try {
        return fromBinary(AttachResponseSchema, message);
    } catch (error) {
        throw new StreamError(`a message cannot be read: ${String(error)}`);
    }
}

function reasonToEnd(error: unknown): NearcastError {
    if (error instanceof NearcastError) return error;
    return new NearcastError(`an internal error of the SDK: ${String(error)}`);
}
