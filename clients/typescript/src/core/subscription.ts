/** A subscription on the device. It computes its result from the objects that the device holds. */

import { Cause, DropReason } from "../generated/nearcast/v1/subscriptions_pb.js";
import type { Delta, Entry } from "../generated/nearcast/v1/subscriptions_pb.js";
import { planeArea } from "./areas.js";
import { ChangingSpec } from "./changing_spec.js";
import type { Clock } from "./clock.js";
import { ClosedError, RefusedError, UnavailableError } from "./errors.js";
import type { Frame, Point } from "./frame.js";
import { groundDistanceM } from "./ground.js";
import { regionOf } from "./kinds.js";
import type { KindRegion } from "./kinds.js";
import type { Location, SharedLocation } from "./location.js";
import { liveObject, isSameObject } from "./model.js";
import type {
    Change,
    ChangeReason,
    Geofence,
    LiveObject,
    Match,
    OsRegions,
    SubscriptionState,
} from "./model.js";
import { UNKNOWN, checkRequest, osRegions } from "./os_regions.js";
import type { CircleRegion } from "./ranges.js";
import type { Buffered, Evaluation } from "./region.js";
import { ReportPolicy } from "./report_policy.js";
import { needsExactPosition, windowMs } from "./specs.js";
import type { Spec } from "./specs.js";
import { Deferred, Notice, throwIfAborted } from "./waiting.js";
import { Watcher } from "./watcher.js";

const REASONS: Partial<Record<Cause, ChangeReason>> = {
    [Cause.SUBSCRIBED]: "subscribed",
    [Cause.REPORTED]: "moved",
    [Cause.PUBLISHED]: "published",
    [Cause.RETRACTED]: "retracted",
    [Cause.REPLACED]: "replaced",
    [Cause.RESUMED]: "resumed",
    [Cause.REWEIGHED]: "reweighed",
    [Cause.REFILLED]: "refilled",
};
const REMOVALS: Partial<Record<DropReason, ChangeReason>> = {
    [DropReason.RETRACTED]: "retracted",
    [DropReason.REPLACED]: "replaced",
    [DropReason.OUT_OF_WINDOW]: "out of window",
};
/** The states in which a result will not change without a further event. */
const DECIDED: readonly SubscriptionState[] = ["exact", "too vague", "too many", "ended"];
/** The states in which a response will bring the result. */
const DUE: readonly SubscriptionState[] = ["stale", "catching up"];
const AWAY: readonly SubscriptionState[] = ["offline", "offline and stale", "lagging"];
/** Time that a result waits for a missing server, or for one that lags. */
const PATIENCE_MS = 8000;
/** Longest time before a report is repeated to a server whose time stands still. */
const RETRY_MS_MAX = 1000;
const NO_REMOVALS: ReadonlyMap<bigint, ChangeReason> = new Map();
const NOTHING: Evaluation = { best: [], marginM: -Infinity, exact: false, isLacking: true };

/** What a subscription needs of the session of its device. */
export interface Host {
    readonly clock: Clock;
    readonly location: Location;
    /** Position of the device on the plane. */
    readonly point: Point;
    readonly prefetchM: number;
    /** Largest number of objects that the server sends for a result without a k. */
    readonly matchesMax: number;
    readonly isOnline: boolean;
    /** False while the server has left a request without a response for seconds. */
    readonly isResponsive: boolean;
    /** How far the server has applied the log of its cluster while it lags behind; else 0. */
    readonly lagOffset: bigint;
    /** The latest reason for which there is no stream, or no response. */
    readonly offlineError: Error | undefined;
    /** Set whenever the state of any subscription may have changed. */
    readonly stateWatchers: Set<Notice>;
    readonly frame: Frame;
    /** Whether all deltas that the last welcome announced have arrived, and the time is known. */
    readonly isCaughtUp: boolean;
    geofence(subscriptions?: Iterable<Subscription>): Geofence;
    unsubscribe(subscription: Subscription, onEnded: () => void): void;
}

/** A subscription of a device and its current result. `Device.subscribe` creates it. */
export class Subscription extends ChangingSpec {
    /** The reason for the end of the subscription; undefined while it lives. */
    error: Error | undefined;
    readonly #host: Host;
    readonly #watchers = new Set<Watcher>();
    #answer: Deferred | undefined;
    #sent: SharedLocation | undefined;
    #kind!: KindRegion;
    #policy!: ReportPolicy;
    #idfGeneration = 0n;
    #objects = new Map<bigint, LiveObject>();
    /** Whether the server does not evaluate it: the device's position was too vague. */
    #isUnplaced = false;
    /** Sequence of a report that waits for its delta; 0 for none. */
    #pendingReport = 0n;
    #nextExpiryMs = 0;
    /** Until then, the server counted an object that the device has dropped itself. */
    #droppedMs = 0;
    /** Before then a report would get the same response again; 0 for no such time. */
    #retryMs = 0;

    /** @internal */
    constructor(
        host: Host,
        /** Number of the subscription on the server. It may change when the device reconnects. */
        public id: number,
        spec: Spec,
        /** The app's name, unique within the device; empty if there is none. */
        readonly name = "",
    ) {
        super(spec);
        this.#host = host;
        this.begin(spec);
    }

    protected override begin(spec: Spec): void {
        this.currentSpec = spec;
        this.#kind = regionOf(spec);
        this.#idfGeneration = 0n;
        this.#objects = new Map();
        this.isKnownHere = false;
        this.#isUnplaced = false;
        this.#pendingReport = 0n;
        this.#nextExpiryMs = 0;
        this.#droppedMs = 0;
        this.#retryMs = 0;
        this.#policy = new ReportPolicy(this.#kind.region, this.#host.prefetchM, this.#sent);
    }

    // -- for apps --------------------------------------------------------------------------------------

    /** Latest reason for which the device is offline: that of `Device.offlineError`. */
    get offlineError(): Error | undefined {
        return this.#host.offlineError;
    }

    /** Generation of the table of weights that the result uses, for tfidf; 0 for none. */
    get idfGeneration(): bigint {
        return this.#idfGeneration;
    }

    /** State of the result: whether `results` is exact now, or the reason why not. */
    get state(): SubscriptionState {
        const host = this.#host;
        if (this.error !== undefined) return "ended";
        if (host.isResponsive && host.isCaughtUp) return this.#stateInSync();
        if (host.isResponsive && host.isOnline) return "catching up";
        const { window, region } = this.spec;
        const isRefilled = (window !== undefined && "count" in window) || region === "stationary";
        const isKept = this.isKnownHere && !isRefilled && !host.clock.hasSlept;
        return isKept && this.#evaluate().exact ? "offline" : "offline and stale";
    }

    #stateInSync(): SubscriptionState {
        const { frame, location, lagOffset } = this.#host;
        const evaluation = this.#evaluate();
        const isAnchored = (this.spec.region ?? "anchored") === "anchored";
        if (!this.isKnownHere || this.isChanging) return "stale";
        if (this.#pendingReport > 0n && !(evaluation.exact && isAnchored)) return "stale";
        if (evaluation.exact && !this.waitsForPosition) {
            return lagOffset > 0n ? "lagging" : "exact";
        }
        if (evaluation.isCapped) return "too many";
        const isTooVague = this.#policy.isTooVague(frame, location, evaluation);
        return isTooVague || this.waitsForPosition ? "too vague" : "stale";
    }

    /** Return the result at the device's position, best first. It costs O(buffer) and sends nothing. */
    results(): Match[] {
        const { frame, location } = this.#host;
        return this.#found().map(([lengthM, object]) => ({
            object,
            score: this.#kind.score(lengthM, frame),
            distanceM: groundDistanceM(location.lon, location.lat, object.lon, object.lat),
        }));
    }

    #found(): [lengthM: number, object: LiveObject][] {
        const { dwell } = this.#kind;
        const nowMs = this.#host.clock.nowMs();
        return this.#evaluate()
            .best.filter(([, one]) => dwell === undefined || dwell.isOver(one, nowMs))
            .map(([lengthM, one]) => [lengthM, this.#objects.get(one) as LiveObject]);
    }

    /**
     * Resolve with the result as soon as it is exact.
     *
     * That is at once while the device is in its safe region, and otherwise when the server has responded
     * to its report: `results()` right after `Device.move` may still be the result at an earlier position.
     * In the states "too many" and "too vague" it is the result that the device has. It rejects with an
     * `UnavailableError` if there is no stream, or the server does not respond or lags, for eight
     * seconds; with the error that has ended the subscription; or with the signal's reason.
     */
    async exactResults(options: { signal?: AbortSignal } = {}): Promise<Match[]> {
        return whenDecided(this, () => this.results(), options.signal);
    }

    /**
     * Yield the changes of the result, starting with its current objects.
     *
     * A slow reader gets the net difference since its last change. The iterator ends when the
     * subscription ends, and throws the signal's reason when the signal aborts. Changes of rank only are
     * yielded by default for top-k subscriptions alone.
     */
    async *changes(
        options: { reordered?: boolean; signal?: AbortSignal } = {},
    ): AsyncGenerator<Change, void> {
        const watcher = this.watch();
        try {
            for (;;) {
                const isReordered = options.reordered ?? this.spec.kind === "topK";
                for (const change of this.difference(watcher)) {
                    throwIfAborted(options.signal);
                    if (isReordered || change.kind !== "reordered") yield change;
                }
                if (this.error !== undefined) return;
                await watcher.noticed.wait(options.signal);
            }
        } finally {
            this.#watchers.delete(watcher);
        }
    }

    /** Yield `state` whenever it changes, starting with the current state. It ends after "ended". */
    async *states(options: { signal?: AbortSignal } = {}): AsyncGenerator<SubscriptionState, void> {
        const changed = new Notice();
        const watchers = this.#host.stateWatchers;
        watchers.add(changed);
        try {
            let seen: SubscriptionState | undefined;
            while (seen !== "ended") {
                throwIfAborted(options.signal);
                changed.take();
                const { state } = this;
                if (state !== seen) {
                    seen = state;
                    yield state;
                }
                if (state !== "ended") await changed.wait(options.signal);
            }
        } finally {
            watchers.delete(changed);
        }
    }

    /** Return a circle about the device within which this subscription needs no report. */
    geofence(): Geofence {
        if (this.error !== undefined) throw this.error;
        return this.#host.geofence([this]);
    }

    /**
     * Return circles that let the app sleep until the phone is near an object.
     *
     * `radiusM` is the distance from an object at which the app is to wake, on the ground, at most the
     * radius of the range; `limit` is the most circles of objects, 1 to 99. While `mustStayAwake` is
     * false, the phone enters no place without waking the app, as far as the device knows the objects.
     * The subscription must be a boolean one of a circle that moves.
     */
    osRegions(radiusM: number, limit = 19): OsRegions {
        if (this.error !== undefined) throw this.error;
        checkRequest(this.spec, radiusM, limit);
        if (!this.isKnownHere || this.isChanging || this.#isUnplaced) return UNKNOWN;
        return osRegions(this.#host, this.#kind.region as CircleRegion, this.#objects, radiusM, limit);
    }

    /** End the subscription; resolve when the server has confirmed it, or if there is no stream. */
    async unsubscribe(): Promise<void> {
        const known = new Deferred();
        this.#host.unsubscribe(this, () => known.resolve());
        await known.promise;
    }

    // -- for the session -------------------------------------------------------------------------------

    /** Return a new watcher of the changes. @internal */
    watch(): Watcher {
        const watcher = new Watcher();
        this.#watchers.add(watcher);
        return watcher;
    }

    /** Return the changes since a watcher's last call. @internal */
    difference(watcher: Watcher): Change[] {
        return watcher.difference(this.#found().map(([, object]) => object));
    }

    /** Whether the first delta has arrived. @internal */
    get isKnown(): boolean {
        return this.isKnownHere;
    }

    /** Whether a response of the server is due. @internal */
    get isWaiting(): boolean {
        return !this.isKnownHere || this.#pendingReport > 0n || this.isChanging || !this.#host.isCaughtUp;
    }

    protected override apply(delta: Delta): number {
        const { region, dwell } = this.#kind;
        const { clock, point, frame, matchesMax } = this.#host;
        if (delta.snapshot) region.buffer.clear();
        const added = delta.add.map((entry) => this.#buffered(entry));
        this.#kind.update(delta, added, matchesMax);
        this.#idfGeneration = delta.bound.case === "reach" ? delta.bound.value.idfGeneration : 0n;
        for (const id of [...this.#objects.keys()]) if (!region.buffer.has(id)) this.#objects.delete(id);
        this.isKnownHere = true;
        this.#isUnplaced = needsExactPosition(this.spec) && delta.bound.case === undefined;
        const ids = added.map((one) => one.objectId);
        dwell?.hold(clock.nowMs(), point, this.#createdMs, ids);
        let isAwaited = delta.cause === Cause.SUBSCRIBED;
        if (delta.reportSequence >= this.#pendingReport) {
            isAwaited ||= this.#pendingReport > 0n;
            this.#pendingReport = 0n;
        }
        this.#setNextExpiry();
        this.#policy.changed();
        const isAnswer = delta.cause === Cause.SUBSCRIBED || delta.cause === Cause.REPORTED;
        const timeMs = Number(delta.timeMs);
        const isBehind = timeMs < this.#droppedMs;
        if (isAnswer && !isBehind) {
            this.#policy.answered(frame, this.#evaluate, timeMs);
        } else if (isAnswer || delta.snapshot) {
            this.#policy.anchored(this.#evaluate);
        }
        if (isAnswer || !isBehind) this.#retryMs = isBehind ? this.#later(timeMs) : 0;
        if (isAwaited) this.wakeCallers();
        this.notice(REASONS[delta.cause] ?? "resumed", removalsOf(delta));
        return added.length;
    }

    /**
     * Return when to report again to a server whose time is behind: after as long as it is behind.
     *
     * Its time stands still while it waits for its disk, and may differ from that of another node. 0 in
     * virtual time, which does not pass by itself: at once.
     */
    #later(serverMs: number): number {
        const { clock } = this.#host;
        const nowMs = clock.nowMs();
        return clock.isVirtual ? 0 : nowMs + Math.min(Math.max(1, nowMs - serverMs), RETRY_MS_MAX);
    }

    readonly #createdMs = (objectId: bigint): number => this.#objects.get(objectId)?.createdMs ?? 0;

    #setNextExpiry(): void {
        let next = Infinity;
        for (const entry of this.#kind.region.buffer.values()) next = Math.min(next, entry.expiryMs);
        this.#nextExpiryMs = next === Infinity ? 0 : next;
    }

    /** Store the object of an entry. If another object had its id, the dwell time starts again. */
    #buffered(entry: Entry): Buffered {
        const message = entry.object as NonNullable<Entry["object"]>;
        const item = liveObject(message);
        const before = this.#objects.get(item.id);
        if (!isSameObject(before, item)) {
            if (before !== undefined) this.#kind.dwell?.forget([item.id]);
            this.#objects.set(item.id, item);
        }
        const durationMs = windowMs(this.spec);
        return {
            objectId: item.id,
            xM: message.point?.xM ?? 0,
            yM: message.point?.yM ?? 0,
            constantM: entry.rM,
            expiryMs: durationMs ? Math.min(item.expiryMs, item.createdMs + durationMs) : item.expiryMs,
            area: item.area && planeArea(item.area, this.#host.frame),
        };
    }

    /** Server time of the next expiry, end of a dwell time, or report; 0 for never. @internal */
    get nextExpiryMs(): number {
        return earliest([this.#nextExpiryMs, this.#kind.dwell?.nextMs() ?? 0, this.#retryMs]);
    }

    /** Record that the device has moved. @internal */
    moved(nowMs: number): void {
        if (this.isKnownHere) this.#kind.dwell?.move(nowMs, this.#host.point, this.#createdMs);
        this.notice("moved");
    }

    /** Drop expired objects, and let objects enter that have matched for the dwell time. @internal */
    passTime(nowMs: number): void {
        if (this.#retryMs <= nowMs) this.#retryMs = 0;
        if (this.#nextExpiryMs > 0 && this.#nextExpiryMs <= nowMs) this.#forgetExpired(nowMs);
        if (this.#kind.dwell?.passTime(nowMs)) this.notice("dwelled");
    }

    #forgetExpired(nowMs: number): void {
        for (const { expiryMs } of this.#kind.region.buffer.values()) {
            if (expiryMs <= nowMs) this.#droppedMs = Math.max(this.#droppedMs, expiryMs);
        }
        const gone = this.#kind.region.forgetExpired(nowMs);
        const reasons = new Map<bigint, ChangeReason>();
        for (const id of gone) {
            const expiryMs = this.#objects.get(id)?.expiryMs ?? 0;
            reasons.set(id, expiryMs <= nowMs ? "expired" : "out of window");
            this.#objects.delete(id);
        }
        this.#kind.dwell?.forget(gone);
        this.#setNextExpiry();
        this.#policy.changed();
        this.notice("expired", reasons);
    }

    /** Return whether the device must report its position. Usually O(1). @internal */
    mustReport(): boolean {
        const { frame, location, point } = this.#host;
        if (this.isWaiting || this.waitsForPosition) return false;
        if (this.#retryMs > 0 && this.#sent !== undefined && location.isStill(frame, this.#sent)) return false;
        if (this.#policy.isQuiet(point, location.accuracyM)) return false;
        return this.#policy.mustReport(frame, location, point, this.#evaluate());
    }

    /** Return the radius on the plane within which the device need not report. @internal */
    fenceM(): number {
        if (!this.isKnownHere || this.isChanging) return 0;
        if (this.waitsForPosition) return Infinity;
        return this.#policy.fenceM(this.#host.frame, this.#host.location, this.#evaluate());
    }

    /** Record a position that the device sends in this report, or in a subscribe. @internal */
    markSent(shared: SharedLocation, sequence = 0n): void {
        this.#sent = shared;
        this.#policy.markSent(shared);
        this.#pendingReport = sequence;
    }

    /** Record that a report was refused; return whether it was for this subscription. @internal */
    reportFailed(sequence: bigint): boolean {
        const isMine = this.#pendingReport === sequence;
        if (isMine) this.#pendingReport = 0n;
        return isMine;
    }

    /** Record that the stream broke: no response to a report will arrive. @internal */
    interrupted(): void {
        this.#pendingReport = 0n;
    }

    /**
     * Wait for a result of the latest spec at the present place; throw the error of a refusal.
     *
     * It waits for one response to a report at most, also if the device moves meanwhile. If there is a
     * result and the device is offline, it does not wait. @internal
     */
    async answered(): Promise<void> {
        if (this.change !== undefined) await this.change.latest.done;
        if (this.error !== undefined) throw this.error;
        if (this.isKnownHere && !DUE.includes(this.state)) return;
        this.#answer ??= new Deferred();
        await this.#answer.promise;
    }

    /** Record that a report for the present place is in progress, unless none is necessary. @internal */
    checked(): void {
        if (this.#answer !== undefined && this.#stateInSync() !== "stale") this.wakeCallers();
    }

    protected override wakeCallers(error?: Error): void {
        const answer = this.#answer;
        this.#answer = undefined;
        if (error === undefined) answer?.resolve();
        else answer?.reject(error);
    }

    /** Wake the watchers of the result. @internal */
    notice(reason: ChangeReason, removals = NO_REMOVALS): void {
        for (const watcher of this.#watchers) watcher.notice(reason, removals);
    }

    /** End the subscription on the device only. @internal */
    end(error: Error = new ClosedError(`subscription ${this.id} has ended`)): void {
        this.error = error;
        while (this.change !== undefined) this.endChange(error);
        this.wakeCallers(error);
        this.notice("resumed");
    }

    /** Whether the device must not report until it knows its exact position. @internal */
    get waitsForPosition(): boolean {
        return needsExactPosition(this.spec) && !this.#host.location.isExact;
    }

    readonly #evaluate = (): Evaluation => {
        if (this.#isUnplaced) return NOTHING;
        const { point, clock, location } = this.#host;
        return this.#kind.region.evaluate(point.xM, point.yM, clock.nowMs(), location.accuracyM);
    };
}

/**
 * Wait until a result is exact, or cannot become exact; read it then, in the state that is given.
 *
 * It throws the error that has ended the subscription, and the errors of `decided`.
 */
export async function whenDecided<Result>(
    subscription: Subscription,
    read: (state: SubscriptionState) => Result,
    signal?: AbortSignal,
): Promise<Result> {
    for (;;) {
        await decided(subscription, signal);
        const { state, error } = subscription; // the device may have moved meanwhile
        if (error !== undefined) throw error;
        if (DECIDED.includes(state)) return read(state);
    }
}

/**
 * Wait until a result is exact, or cannot become exact.
 *
 * It throws an `UnavailableError` if there is no stream, or the server does not respond or lags, for
 * `PATIENCE_MS` without interruption.
 */
async function decided(subscription: Subscription, signal?: AbortSignal): Promise<void> {
    throwIfAborted(signal);
    const limit = new AbortController();
    const abort = () => limit.abort();
    signal?.addEventListener("abort", abort);
    let timer: ReturnType<typeof setTimeout> | undefined;
    try {
        for await (const state of subscription.states({ signal: limit.signal })) {
            if (DECIDED.includes(state)) return;
            if (AWAY.includes(state)) {
                timer ??= setTimeout(abort, PATIENCE_MS);
            } else {
                clearTimeout(timer);
                timer = undefined;
            }
        }
    } catch (error) {
        throwIfAborted(signal);
        throw limit.signal.aborted ? unavailable(subscription) : error;
    } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", abort);
    }
}

function unavailable({ state, offlineError }: Subscription): UnavailableError {
    const waitedS = PATIENCE_MS / 1000;
    if (offlineError instanceof RefusedError && offlineError.reason !== "DRAINING") {
        const { message } = offlineError;
        const waited = `the server has not served the device for ${waitedS} s`;
        return new UnavailableError(`${waited}, and last reported: ${message}`);
    }
    if (state === "lagging") {
        return new UnavailableError(`the server has lagged behind the log of its cluster for ${waitedS} s`);
    }
    return new UnavailableError(`the server cannot be reached: it has not responded for ${waitedS} s`);
}

function removalsOf(delta: Delta): ReadonlyMap<bigint, ChangeReason> {
    const found = new Map<bigint, ChangeReason>();
    for (const { objectId, reason } of delta.drop) {
        const why = REMOVALS[reason];
        if (why !== undefined) found.set(objectId, why);
    }
    return found;
}

/** Return the least time; 0, for never, does not count. */
export function earliest(times: Iterable<number>): number {
    const least = [...times]
        .filter((one) => one > 0)
        .reduce((one, other) => Math.min(one, other), Infinity);
    return least === Infinity ? 0 : least;
}
