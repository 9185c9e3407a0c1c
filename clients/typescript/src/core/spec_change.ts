/** The change of a subscription to another spec, in place. See `nearcast/protocol/spec_change.py`. */

import { Cause } from "../generated/nearcast/v1/subscriptions_pb.js";
import type { Delta } from "../generated/nearcast/v1/subscriptions_pb.js";
import { StreamError } from "./errors.js";
import { isSameSpec } from "./specs.js";
import type { Spec } from "./specs.js";
import { Deferred } from "./waiting.js";

/**
 * One change. It is *foreign* if the server has another subscription under the number, or none: the
 * device drops the deltas of that subscription.
 */
export class SpecChange {
    isSent = false;
    /** Whether the server already has the new spec, so that any snapshot belongs to it. */
    isInForce = false;
    /** Change that the app requested during this one. */
    queued: SpecChange | undefined;
    /** Deltas that belong to either spec, a snapshot first. */
    held: Delta[] = [];
    readonly #done = new Deferred();

    constructor(
        public spec: Spec,
        public isForeign = false,
    ) {}

    /** Record that the app requests yet another spec; the latest one counts. */
    want(spec: Spec): void {
        if (!this.isSent) this.spec = spec;
        else if (this.queued === undefined)
            this.queued = isSameSpec(spec, this.spec) ? undefined : new SpecChange(spec);
        else this.queued.spec = spec;
    }

    /** The change that the app requested last. */
    get latest(): SpecChange {
        return this.queued ?? this;
    }

    /** Record that the change has been sent to the server. */
    sent(): void {
        this.isSent = true;
        this.held = [];
    }

    /** Return whether a delta is the first delta of the new spec. */
    isAnswer(delta: Delta): boolean {
        if (!this.isSent) return false;
        const isFirst = delta.cause === Cause.SUBSCRIBED;
        if (isFirst && this.isForeign && !delta.snapshot) {
            throw new StreamError(`subscription ${delta.subscriptionId}: a snapshot was to come`);
        }
        return isFirst || (this.isInForce && delta.snapshot);
    }

    /** Return whether a delta must not be applied now. It is dropped or held. */
    keepsBack(delta: Delta): boolean {
        if (this.isSent && (this.held.length > 0 || delta.snapshot)) {
            this.held.push(delta);
            return true;
        }
        return this.isForeign;
    }

    /** Wake the callers that wait for the change; throw the error there if there is one. */
    end(error?: Error): void {
        if (error === undefined) this.#done.resolve();
        else this.#done.reject(error);
    }

    /** Settled with the response; it rejects with the error of a refusal. */
    get done(): Promise<void> {
        return this.#done.promise;
    }
}
