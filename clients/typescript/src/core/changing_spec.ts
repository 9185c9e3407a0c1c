/**
 * The changes of the spec of one subscription, in order.
 *
 * Until the response arrives, the subscription has the old spec and shows the old result. Then it starts
 * again with the new spec. See `nearcast/protocol/changing_spec.py`.
 */

import type { Delta } from "../generated/nearcast/v1/subscriptions_pb.js";
import { SpecChange } from "./spec_change.js";
import { isSameSpec, needsExactPosition } from "./specs.js";
import type { Spec } from "./specs.js";

export abstract class ChangingSpec {
    /** Change to another spec that is in progress. @internal */
    change: SpecChange | undefined;
    protected isKnownHere = false;

    constructor(protected currentSpec: Spec) {}

    /** Spec of the current result. */
    get spec(): Spec {
        return this.currentSpec;
    }

    /** Apply a delta; return the number of objects that it added. */
    protected abstract apply(delta: Delta): number;

    /** Start with a spec and an empty buffer. */
    protected abstract begin(spec: Spec): void;

    /** Wake the callers that wait for a result. */
    protected abstract wakeCallers(error?: Error): void;

    /** Whether a change to another spec has been sent to the server. @internal */
    get isChanging(): boolean {
        return this.change?.isSent ?? false;
    }

    /** Whether a change may be requested now: all earlier requests have their responses. @internal */
    get isReadyToAsk(): boolean {
        const { change } = this;
        return change !== undefined && !change.isSent && (this.isKnownHere || change.isForeign);
    }

    /** Whether the current spec or the next one needs the exact position of the device. @internal */
    get needsExactPosition(): boolean {
        return (
            needsExactPosition(this.spec) ||
            (this.change !== undefined && needsExactPosition(this.change.latest.spec))
        );
    }

    /** Record the spec that the app requests: the current spec, or another one. @internal */
    want(spec: Spec, isOnline: boolean): void {
        const { change } = this;
        if (change === undefined) {
            if (isSameSpec(spec, this.spec)) return;
            if (this.isKnownHere || isOnline) this.change = new SpecChange(spec);
            else this.begin(spec); // the next welcome lists the server's subscriptions
        } else if (isSameSpec(spec, this.spec) && !(change.isSent || change.isForeign)) {
            this.endChange();
        } else {
            change.want(spec);
        }
    }

    /** Record the server's spec for this subscription, from a welcome. @internal */
    agree(spec: Spec | undefined, resumed: boolean): void {
        const { change } = this;
        const isSame = (one: Spec) => spec !== undefined && isSameSpec(spec, one);
        if (change === undefined) {
            if (!isSame(this.spec)) {
                this.change = new SpecChange(this.spec, true);
                this.isKnownHere = false;
            }
            return;
        }
        const { held } = change;
        change.held = [];
        if (isSame(change.spec)) {
            change.isSent = true;
            if (resumed) change.held = held;
            else change.isInForce = true;
            return;
        }
        change.isSent = change.isInForce = false;
        if (!isSame(this.spec)) change.isForeign = true;
        else if (resumed && !change.isForeign) for (const delta of held) this.apply(delta);
    }

    /** Record that the server does not have this subscription: the device subscribes again. @internal */
    forgotten(): void {
        this.isKnownHere = false;
        if (this.change === undefined) return;
        this.change.isForeign = true;
        this.change.isSent = this.change.isInForce = false;
    }

    /** Process a delta of the server; return the number of objects that were added. @internal */
    receive(delta: Delta): number {
        const { change } = this;
        if (change?.isAnswer(delta)) this.#takeOver(change, !delta.snapshot);
        else if (change?.keepsBack(delta)) return 0;
        return this.apply(delta);
    }

    /**
     * Record that all messages have arrived that the server sent before it processed the ping of a
     * change. @internal
     */
    confirm(change: SpecChange): void {
        if (this.change !== change || !change.isSent || change.held.length === 0) return;
        this.#takeOver(change, false);
        for (const delta of change.held) this.apply(delta);
    }

    /**
     * Record that the server refused a subscribe; return whether the subscription continues. @internal
     */
    refuse(error: Error): boolean {
        const { change } = this;
        if (change === undefined) return false;
        if (!change.isSent) {
            // The first spec was refused, and the app has requested another one since.
            this.wakeCallers(error);
            change.isForeign = true;
            return true;
        }
        if (change.isForeign) {
            if (change.queued === undefined) return false;
            change.queued.isForeign = true;
        }
        this.endChange(error);
        if (!change.isForeign) for (const delta of change.held) this.apply(delta);
        return true;
    }

    /** Switch to the new spec; `isSame` if the server considers both specs the same. */
    #takeOver(change: SpecChange, isSame: boolean): void {
        if (isSame) this.currentSpec = change.spec;
        else if (!isSameSpec(change.spec, this.spec)) this.begin(change.spec);
        this.endChange();
    }

    /** End the change, and continue with the queued change if there is one. */
    protected endChange(error?: Error): void {
        const { change } = this;
        this.change = change?.queued;
        change?.end(error);
    }
}
