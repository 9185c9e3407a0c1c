/**
 * The device's side of the protocol, without I/O.
 *
 * The session sends requests through a function and receives responses in `receive`; a clock gives the
 * time. So the same session runs over any transport, and in tests without one. It follows
 * `nearcast/protocol/device_session.py`, and passes the same vectors.
 */

import { Rejection_Command } from "../generated/nearcast/v1/device_service_pb.js";
import type {
    AttachRequest,
    AttachResponse,
    Detached,
    Rejection,
    Welcome,
} from "../generated/nearcast/v1/device_service_pb.js";
import type { Delta } from "../generated/nearcast/v1/subscriptions_pb.js";
import type { Clock } from "./clock.js";
import { DeltaSequence } from "./delta_sequence.js";
import { ClosedError, RefusedError, UnavailableError, invalid } from "./errors.js";
import type { Reason } from "./errors.js";
import { frameFrom } from "./frame.js";
import type { Frame, Point } from "./frame.js";
import { groundRadiusM } from "./ground.js";
import type { Fix, Location } from "./location.js";
import type { Counters, Geofence } from "./model.js";
import { NAME_LENGTH_MAX, checkedName, finite, notNegative } from "./numbers.js";
import { SubscriptionRegistry } from "./registry.js";
import type { Listed } from "./registry.js";
import { RequestSender } from "./request_sender.js";
import type { Motion } from "./request_sender.js";
import { needsExactPosition, readSpec, writeSpec } from "./specs.js";
import type { Spec } from "./specs.js";
import { earliest } from "./subscription.js";
import type { Host, Subscription } from "./subscription.js";
import type { Notice } from "./waiting.js";

const MS_PER_S = 1000;
const HEADING_DEG_MAX = 360;
const SPEED_MPS_MAX = 10_000;
const EXACT = "with an exact position only: in this mode the server needs to know where the device is";

/** Settings of a session. */
export interface SessionOptions {
    readonly deviceId: string;
    /** Random bytes of this instance of the app. */
    readonly nonce: Uint8Array;
    /** Server time. */
    readonly clock: Clock;
    /** Queues a request for the stream. */
    readonly send: (request: AttachRequest) => void;
    readonly location: Location;
    /** Distance from the edge of a region at which the device already reports. */
    readonly prefetchM?: number | undefined;
    /** Whether to replace another attached instance at the first welcome of this one. */
    readonly takeOver?: boolean | undefined;
}

/** Reasons for which a device says hello at another server, or later. */
export const ELSEWHERE: readonly Reason[] = ["ANOTHER_SERVER", "DRAINING", "RECOVERING"];

/** The state of one device. */
export class DeviceSession implements Host {
    readonly deviceId: string;
    readonly clock: Clock;
    readonly location: Location;
    readonly prefetchM: number;
    readonly counters: Counters = {
        moves: 0,
        reports: 0,
        deltas: 0,
        objects: 0,
        bytesSent: 0,
        bytesReceived: 0,
    };
    readonly stateWatchers = new Set<Notice>();
    point: Point = { xM: 0, yM: 0 };
    matchesMax = 0;
    isOnline = false;
    wasOnline = false;
    isResponsive = true;
    lagOffset = 0n;
    /** Subscriptions that a server that lags has refused: requested again when it has caught up. */
    readonly #postponed = new Set<number>();
    /** The error that has ended this session. */
    error: Error | undefined;
    /** The latest reason for which there is no stream, or no response; undefined while it is online. */
    offlineError: Error | undefined;
    /** Time that the device may send nothing, in milliseconds; 0 for no limit. */
    leaseMs = 0;
    /** Called after every event. */
    onEvent: () => void = () => {};
    /** Called once, when the session has ended. */
    onEnd: () => void = () => {};
    /** Called after a welcome. */
    onWelcome: () => void = () => {};
    /** Called when the device is to say hello on another stream; by default the session ends. */
    onMoved: (error: RefusedError) => void = (error) => this.fail(error);
    #nameLengthMax = NAME_LENGTH_MAX;
    readonly #registry: SubscriptionRegistry;
    readonly #sequence = new DeltaSequence();
    readonly #sender: RequestSender;
    readonly #pongs = new Map<bigint, () => void>();
    /** Steady time of the last fix, and whether it was virtual. */
    #fixed: { readonly steadyMs: number; readonly isVirtual: boolean };
    readonly #nonce: Uint8Array;
    readonly #takeOver: boolean;

    constructor(options: SessionOptions) {
        this.deviceId = checkedName(options.deviceId, "deviceId");
        this.clock = options.clock;
        this.location = options.location;
        this.prefetchM = notNegative(options.prefetchM ?? 0, "prefetchM");
        this.#fixed = this.#fixedNow();
        this.#nonce = options.nonce;
        this.#takeOver = options.takeOver ?? false;
        this.#registry = new SubscriptionRegistry(this);
        const { location, send } = options;
        this.#sender = new RequestSender(location, send, this.counters, this.clock, this.#sequence);
    }

    /** Subscriptions by number. */
    get subscriptions(): ReadonlyMap<number, Subscription> {
        return this.#registry.subscriptions;
    }

    /** Service area of the server and its projection; an empty area before the first welcome. */
    get frame(): Frame {
        return this.#sender.frame;
    }

    // -- the stream ------------------------------------------------------------------------------------

    get isCaughtUp(): boolean {
        return this.isOnline && this.#sequence.isComplete && !this.clock.hasSlept;
    }

    /** Whether a response of the server is due. */
    get isWaiting(): boolean {
        return !this.isCaughtUp || this.#all().some((one) => one.isWaiting);
    }

    /** Whether any request, of any kind, has no response yet. */
    get isResponseDue(): boolean {
        const due = this.#all().filter(({ id }) => !this.#postponed.has(id));
        const isWaiting = !this.isCaughtUp || due.some((one) => one.isWaiting);
        return isWaiting || this.#pongs.size > 0 || this.#registry.isEnding;
    }

    /** Send a hello on a new stream, unless this session has ended. */
    connect(): void {
        if (this.error !== undefined) return;
        this.#sender.hello(this.deviceId, this.#nonce, this.#takeOver && !this.wasOnline);
    }

    /** Record that the server has stopped responding, or responds again. */
    setResponsive(isResponsive: boolean): void {
        this.isResponsive = isResponsive;
        this.offlineError = isResponsive
            ? undefined
            : new UnavailableError("the server does not respond");
        this.#wakeStateWatchers();
    }

    /** Record that the stream has ended. */
    disconnect(): void {
        this.isOnline = false;
        this.lagOffset = 0n;
        this.#postponed.clear();
        this.isResponsive = true; // without a stream there is no response to wait for
        for (const subscription of this.#all()) {
            subscription.interrupted();
            subscription.notice("resumed");
        }
        const waiting = [...this.#pongs.values()];
        this.#pongs.clear();
        for (const answered of waiting) answered();
        this.#registry.interrupted();
        this.#wakeStateWatchers();
        this.onEvent();
    }

    /** End the session with an error; it cannot be resumed. */
    fail(error: Error): void {
        this.error = error;
        this.offlineError = error;
        this.disconnect();
        for (const subscription of this.#all()) subscription.end(error);
        this.onEnd();
    }

    /** Process a message of the server. It throws a `StreamError` if the device has to resume. */
    receive(response: AttachResponse): void {
        const { event } = response;
        switch (event.case) {
            case "delta":
                this.#receiveDelta(event.value);
                break;
            case "welcome":
                this.#receiveWelcome(event.value);
                break;
            case "pong":
                this.#receivePong(event.value.number);
                break;
            case "unsubscribed":
                this.#receiveUnsubscribed(event.value.subscriptionId);
                break;
            case "rejection":
                this.#receiveRejection(event.value);
                break;
            case "lag":
                this.#receiveLag(event.value.offset);
                break;
            case "locate":
                this.#receiveLocate(event.value.subscriptionIds);
                break;
            case "detached":
                this.#receiveDetached(event.value);
                break;
            default: // the end of the stream, or an event of a newer server
        }
        this.#wakeStateWatchers();
        this.onEvent();
    }

    #receiveWelcome(welcome: Welcome): void {
        this.clock.adjust(Number(welcome.timeMs), welcome.virtualTime);
        this.#forgetExpired();
        this.#sender.frame = frameFrom(welcome.frame);
        this.point = this.location.project(this.frame);
        this.#sender.marginMMax = welcome.limits?.marginMMax ?? 0;
        this.matchesMax = welcome.limits?.matchesMax ?? 0;
        this.#nameLengthMax = welcome.limits?.nameLengthMax ?? 0;
        this.isOnline = this.wasOnline = true;
        this.offlineError = undefined;
        this.lagOffset = welcome.lagOffset;
        const { version, epoch, resumed } = welcome;
        this.#sequence.welcome(version, epoch, !resumed && welcome.subscriptions.length === 0);
        this.#reconcile(welcome);
        this.#check(this.#all());
        this.leaseMs = Number(welcome.leaseMs);
        this.onWelcome();
    }

    #reconcile({ subscriptions, resumed }: Welcome): void {
        const listed = subscriptions.map(({ subscriptionId, spec, name }): [number, Listed] => [
            subscriptionId,
            { spec: readSpec(spec), name },
        ]);
        const { ended, unknown, changed } = this.#registry.reconcile(new Map(listed), resumed);
        for (const id of ended) this.#sender.unsubscribe(id);
        for (const subscription of unknown) this.#ask(subscription);
        for (const subscription of changed) {
            // The change may have been requested on the previous stream.
            if (subscription.isChanging) this.#pingFor(subscription);
            this.#askForChange(subscription);
        }
    }

    #receiveDelta(delta: Delta): void {
        const wasCaughtUp = this.isCaughtUp;
        if (!this.#sequence.take(delta.version, delta.snapshot)) return;
        const timeMs = Number(delta.timeMs);
        const hasLeaped = timeMs > this.clock.nowMs();
        if (hasLeaped) {
            this.clock.observe(timeMs);
            this.#forgetExpired();
        }
        this.counters.deltas += 1;
        const subscription = this.subscriptions.get(delta.subscriptionId);
        if (subscription !== undefined) {
            this.counters.objects += subscription.receive(delta);
            this.#askForChange(subscription);
        }
        if (hasLeaped || (!wasCaughtUp && this.isCaughtUp)) this.#check(this.#all());
        else if (subscription !== undefined) this.#check([subscription]);
        if (this.#sequence.isAckDue) this.#sender.ack(); // a report would have acknowledged it
    }

    #receivePong(number: bigint): void {
        this.#repeatRefusedEnds();
        const answered = this.#pongs.get(number);
        this.#pongs.delete(number);
        answered?.();
    }

    /** Send the ends again that the server has refused. */
    #repeatRefusedEnds(): void {
        for (const id of this.#registry.takeRefusedEnds()) this.#sender.unsubscribe(id);
    }

    /**
     * Process that the server lags, or has caught up: then what it has refused is sent again. Ends are
     * sent first: a name is free once the subscription that had it has ended.
     */
    #receiveLag(offset: bigint): void {
        this.lagOffset = offset;
        if (offset > 0n) return;
        this.#repeatRefusedEnds();
        const postponed = [...this.#postponed].sort((one, other) => one - other);
        this.#postponed.clear();
        for (const id of postponed) {
            const subscription = this.subscriptions.get(id);
            if (subscription !== undefined && !subscription.isKnown) this.#ask(subscription);
        }
    }

    /** Process the end of a subscription, also if this instance has not ended it. */
    #receiveUnsubscribed(id: number): void {
        this.#registry.ended(id);
        const subscription = this.subscriptions.get(id);
        this.#registry.subscriptions.delete(id);
        subscription?.end(new ClosedError(`the server has ended subscription ${id}`));
    }

    /** Report the position, unless a report is in progress, which arrives after the request. */
    #receiveLocate(ids: readonly number[]): void {
        const found = ids
            .map((id) => this.subscriptions.get(id))
            .filter((one) => one !== undefined)
            .filter((one) => !one.waitsForPosition && (one.isChanging || !one.isWaiting));
        if (found.length > 0) this.#sender.report(found);
    }

    #receiveDetached(detached: Detached): void {
        const error = RefusedError.fromWire(detached.error);
        if (error.reason === "SILENT" || error.reason === "LEASE_EXPIRED") {
            this.offlineError = error;
            this.disconnect();
            this.connect();
        } else {
            this.#leave(error);
        }
    }

    /** Leave the stream: for another one if the server serves the device elsewhere or later, or for good. */
    #leave(error: RefusedError): void {
        if (!ELSEWHERE.includes(error.reason)) {
            this.fail(error);
            return;
        }
        this.offlineError = error;
        this.disconnect();
        this.onMoved(error);
    }

    #receiveRejection({ command, number, error: wire }: Rejection): void {
        const error = RefusedError.fromWire(wire);
        if (command === Rejection_Command.HELLO) {
            this.#leave(error);
            return;
        }
        // After OUT_OF_ORDER, the next welcome restores the state: the server had detached the device.
        if (error.reason === "OUT_OF_ORDER") return;
        const id = Number(number);
        if (command === Rejection_Command.SUBSCRIBE) this.#receiveRefusedSubscribe(id, error);
        else if (command === Rejection_Command.REPORT) this.#receiveRefusedReport(number);
        else if (command === Rejection_Command.UNSUBSCRIBE) {
            if (error.reason === "UNKNOWN_SUBSCRIPTION") this.#registry.ended(id);
            else this.#registry.endRefused(id);
        }
    }

    /** Subscribe again for the subscriptions of a report; the server does not know all of them. */
    #receiveRefusedReport(number: bigint): void {
        for (const subscription of this.#all()) {
            if (subscription.reportFailed(number) && !subscription.isChanging) {
                subscription.forgotten();
                this.#ask(subscription);
            }
        }
    }

    /**
     * Continue a subscription with its old spec if it had one; end it otherwise. A new one waits for a
     * server that lags, as it would for a stream.
     */
    #receiveRefusedSubscribe(id: number, error: RefusedError): void {
        const subscription = this.subscriptions.get(id);
        if (subscription === undefined) return;
        const isNew = !subscription.isKnown && subscription.change === undefined;
        if (isNew && error.reason === "LAGGING" && this.lagOffset > 0n) {
            this.#postponed.add(id);
        } else if (subscription.refuse(error)) {
            this.#askForChange(subscription);
            this.#check([subscription]);
        } else {
            this.#registry.refused(id);
            subscription.end(error);
        }
    }

    // -- the device ------------------------------------------------------------------------------------

    /** Set a new fix; report it if any region does not cover it. */
    move(fix: Fix, motion: Motion = {}): void {
        this.requireOpen();
        const accuracyM = fix.accuracyM ?? 0;
        if (
            accuracyM !== 0 &&
            this.location.isExact &&
            this.#all().some((one) => one.needsExactPosition)
        ) {
            throw invalid("accuracyM", accuracyM, EXACT);
        }
        checkMotion(motion);
        this.location.move(fix);
        this.point = this.location.project(this.frame);
        this.#fixed = this.#fixedNow();
        this.counters.moves += 1;
        const nowMs = this.clock.nowMs();
        for (const subscription of this.#all()) {
            subscription.passTime(nowMs);
            subscription.moved(nowMs);
        }
        this.#check(this.#all(), motion);
        this.#wakeStateWatchers();
    }

    /** Drop expired objects; report if too few are left for an exact result. */
    passTime(): void {
        const nowMs = this.clock.nowMs();
        for (const subscription of this.#all()) {
            const nextMs = subscription.nextExpiryMs;
            if (nextMs > 0 && nextMs <= nowMs) {
                subscription.passTime(nowMs);
                this.#check([subscription]);
            }
        }
        if (this.clock.isVirtual) this.beat();
        this.#wakeStateWatchers();
        this.onEvent();
    }

    #forgetExpired(): void {
        const nowMs = this.clock.nowMs();
        for (const subscription of this.#all()) subscription.passTime(nowMs);
    }

    /** Return the server time at which the next object in any buffer expires; 0 for never. */
    nextExpiryMs(): number {
        return earliest(this.#all().map((one) => one.nextExpiryMs));
    }

    /** Return a circle about the device within which it has nothing to report. */
    geofence(subscriptions: Iterable<Subscription> = this.#all()): Geofence {
        const fenced = [...subscriptions];
        const planeM = fenced.reduce((least, one) => Math.min(least, one.fenceM()), Infinity);
        const { lon, lat } = this.location;
        const radiusM = groundRadiusM(this.frame, lon, lat, planeM);
        return { lon, lat, radiusM, untilMs: earliest(fenced.map((one) => one.nextExpiryMs)) };
    }

    #fixedNow(): { readonly steadyMs: number; readonly isVirtual: boolean } {
        return { steadyMs: this.clock.steadyMs(), isVirtual: this.clock.isVirtual };
    }

    /**
     * Return the milliseconds for which the device need not look where it is; 0 while a response is due.
     */
    nextFixMs(vMaxMps: number): number {
        const limit = `a number of metres a second, above 0, at most ${SPEED_MPS_MAX}`;
        const speed = finite(vMaxMps, "vMaxMps", limit);
        if (speed <= 0 || speed > SPEED_MPS_MAX) throw invalid("vMaxMps", vMaxMps, limit);
        if (this.isWaiting || this.clock.isVirtual !== this.#fixed.isVirtual) return 0;
        const { radiusM, untilMs } = this.geofence();
        const ageMs = this.clock.steadyMs() - this.#fixed.steadyMs;
        const leftMs = untilMs > 0 ? untilMs - this.clock.nowMs() : Infinity;
        return Math.max(0, Math.min((radiusM / speed) * MS_PER_S - ageMs, leftMs));
    }

    /** Start a subscription, or return the one of that name and start its change to the spec. */
    subscribe(spec: Spec, name = ""): Subscription {
        this.requireOpen();
        writeSpec(spec); // throws before anything changes
        if (needsExactPosition(spec) && !this.location.isExact)
            throw invalid("spec.region", spec.region, EXACT);
        checkedName(name, "name", { lengthMax: this.#nameLengthMax, optional: true });
        const known = name ? this.#registry.named(name) : undefined;
        if (known !== undefined) {
            known.want(spec, this.isOnline);
            this.#askForChange(known);
            return known;
        }
        const subscription = this.#registry.start(spec, name);
        if (this.isOnline) this.#ask(subscription);
        return subscription;
    }

    /** Request the new spec of a subscription, if its earlier requests have their responses. */
    #askForChange(subscription: Subscription): void {
        if (this.isOnline && subscription.isReadyToAsk) this.#ask(subscription);
    }

    /** Request a subscription, or its change. */
    #ask(subscription: Subscription): void {
        this.#sender.subscribe(subscription);
        if (subscription.change !== undefined) this.#pingFor(subscription);
    }

    /** Send a ping after a change: with its pong, all messages about the change have arrived. */
    #pingFor(subscription: Subscription): void {
        const { change } = subscription;
        this.ping(() => {
            if (!this.isOnline || change === undefined) return;
            subscription.confirm(change);
            this.#askForChange(subscription);
            this.#check([subscription]);
        });
    }

    /** End a subscription; call back when the server has confirmed it, or if there is no stream. */
    unsubscribe(subscription: Subscription, onEnded: () => void = () => {}): void {
        this.#wakeStateWatchers();
        if (this.#registry.end(subscription, this.isOnline ? onEnded : undefined)) {
            this.#sender.unsubscribe(subscription.id);
        } else {
            onEnded();
        }
    }

    /** Steady time at which a ping is due: a third of the lease after the last message. */
    get beatDueMs(): number {
        return this.#sender.sentMs + Math.max(1, Math.floor(this.leaseMs / 3));
    }

    /** Send a ping, if it is due. */
    beat(): void {
        if (this.isOnline && this.leaseMs > 0 && this.clock.steadyMs() >= this.beatDueMs) this.ping();
    }

    /** Send a ping after all earlier messages. It calls back at the pong, or at disconnection. */
    ping(onPong: () => void = () => {}): void {
        this.#pongs.set(this.#sender.ping(), onPong);
    }

    /** Throw the error that ended this session, if it has ended. */
    requireOpen(): void {
        if (this.error !== undefined) throw this.error;
    }

    /** Report for the subscriptions with a region that does not cover the device. */
    #check(subscriptions: readonly Subscription[], motion: Motion = {}): void {
        if (!this.isCaughtUp) return;
        const left = subscriptions.filter((one) => one.mustReport());
        if (left.length > 0) this.#sender.report(left, motion);
        for (const subscription of subscriptions) subscription.checked();
    }

    #all(): Subscription[] {
        return [...this.subscriptions.values()];
    }

    #wakeStateWatchers(): void {
        for (const changed of this.stateWatchers) changed.set();
    }
}

function checkMotion({ headingDeg, speedMps }: Motion): void {
    if (headingDeg !== undefined) {
        const limit = `a number of degrees from -${HEADING_DEG_MAX} to ${HEADING_DEG_MAX}`;
        if (Math.abs(finite(headingDeg, "headingDeg", limit)) > HEADING_DEG_MAX) {
            throw invalid("headingDeg", headingDeg, limit);
        }
    }
    if (speedMps !== undefined) {
        const limit = `a number of metres a second from 0 to ${SPEED_MPS_MAX}`;
        const speed = finite(speedMps, "speedMps", limit);
        if (speed < 0 || speed > SPEED_MPS_MAX) throw invalid("speedMps", speedMps, limit);
    }
}
