/**
 * The subscriptions of a device, and their reconciliation with the server's. See
 * `subscription_registry.py`.
 */

import { SpecChange } from "./spec_change.js";
import { isSameSpec } from "./specs.js";
import type { Spec } from "./specs.js";
import { Subscription } from "./subscription.js";
import type { Host } from "./subscription.js";

/** A subscription in the list of a welcome; its spec is undefined if its kind is unknown to this SDK. */
export interface Listed {
    readonly spec: Spec | undefined;
    readonly name: string;
}

/** Differences that the device has to send to the server. */
export interface Difference {
    /** Numbers of subscriptions that have ended on the device. */
    readonly ended: readonly number[];
    /** Subscriptions that the server does not have. */
    readonly unknown: readonly Subscription[];
    /** Subscriptions with a change in progress to another spec, which the server may already have. */
    readonly changed: readonly Subscription[];
}

export class SubscriptionRegistry {
    readonly subscriptions = new Map<number, Subscription>();
    #nextId = 1;
    /** Subscriptions that ended here and may be unconfirmed. */
    #endedIds = new Set<number>();
    readonly #onEnded = new Map<number, () => void>();
    readonly #refusedIds = new Set<number>();
    /** Numbers of the server's subscriptions that do not exist here, by name. */
    readonly #foreign = new Map<string, number>();

    constructor(readonly host: Host) {}

    /** Start a subscription under the server's number for its name, or under a new number. */
    start(spec: Spec, name: string): Subscription {
        const foreign = this.host.isOnline ? this.#foreign.get(name) : undefined;
        const subscription = new Subscription(this.host, foreign ?? this.#newId(), spec, name);
        if (foreign !== undefined) {
            this.#foreign.delete(name);
            subscription.change = new SpecChange(spec, true);
        }
        this.subscriptions.set(subscription.id, subscription);
        return subscription;
    }

    #newId(): number {
        this.#nextId += 1;
        return this.#nextId - 1;
    }

    /** Return the subscription of a name. */
    named(name: string): Subscription | undefined {
        return [...this.subscriptions.values()].find((one) => one.name === name);
    }

    /** End a subscription; return whether to send an unsubscribe: if there is a callback. */
    end(subscription: Subscription, onEnded: (() => void) | undefined): boolean {
        if (!this.subscriptions.delete(subscription.id)) return false;
        this.#endedIds.add(subscription.id);
        subscription.end();
        if (onEnded === undefined) return false;
        this.#onEnded.set(subscription.id, onEnded);
        return true;
    }

    /** Whether an unsubscribe waits for its confirmation. */
    get isEnding(): boolean {
        return this.#onEnded.size > 0;
    }

    /** Record that the server has confirmed an end. */
    ended(id: number): void {
        this.#endedIds.delete(id);
        this.#refusedIds.delete(id);
        this.#callBack(id);
    }

    /** Record that the server could not end a subscription; the device sends the unsubscribe again. */
    endRefused(id: number): void {
        this.#refusedIds.add(id);
        this.#callBack(id);
    }

    #callBack(id: number): void {
        const onEnded = this.#onEnded.get(id);
        this.#onEnded.delete(id);
        onEnded?.();
    }

    /** Return and clear the numbers of subscriptions with a refused end, in order. */
    takeRefusedEnds(): number[] {
        const taken = [...this.#refusedIds].sort((one, other) => one - other);
        this.#refusedIds.clear();
        return taken;
    }

    /** Remove a refused subscription. The server keeps its own one of that name. */
    refused(id: number): void {
        const found = this.subscriptions.get(id);
        this.subscriptions.delete(id);
        if (found?.name && found.change !== undefined) this.#foreign.set(found.name, id);
    }

    /** Call back the callers that wait for a confirmation: there is no stream. */
    interrupted(): void {
        const waiting = [...this.#onEnded.values()];
        this.#onEnded.clear();
        for (const onEnded of waiting) onEnded();
    }

    /** Reconcile with the subscriptions of the server, by number; return the differences to send. */
    reconcile(listed: ReadonlyMap<number, Listed>, resumed: boolean): Difference {
        this.#nextId = Math.max(this.#nextId, ...[...listed.keys()].map((id) => id + 1));
        this.#endedIds = new Set([...this.#endedIds].filter((id) => listed.get(id)?.spec !== undefined));
        const ended = [...listed.keys()].filter((id) => this.#endedIds.has(id));
        const alive = new Map([...listed].filter(([id]) => !this.#endedIds.has(id)));
        this.#foreign.clear();
        this.#meetByName(alive);
        for (const [id, one] of alive) {
            const mine = this.subscriptions.get(id);
            if (mine !== undefined && isOf(mine, one)) mine.agree(one.spec, resumed);
            else this.#adopt(id, one);
        }
        this.#refusedIds.clear();
        const mine = [...this.subscriptions.values()];
        const unknown = mine.filter((one) => !alive.has(one.id));
        for (const one of unknown) one.forgotten();
        const changed = mine.filter((one) => one.change !== undefined && alive.has(one.id));
        return { ended, unknown, changed };
    }

    /** Move local subscriptions to the server's numbers for their names. */
    #meetByName(alive: ReadonlyMap<number, Listed>): void {
        const numbers = new Map(
            [...alive].filter(([, one]) => one.name !== "").map(([id, one]) => [one.name, id]),
        );
        const moving = [...this.subscriptions.values()].filter(
            (one) => (numbers.get(one.name) ?? one.id) !== one.id,
        );
        for (const mine of moving) this.subscriptions.delete(mine.id);
        for (const mine of moving) {
            const id = numbers.get(mine.name) as number;
            this.#giveWay(id);
            mine.id = id;
            this.subscriptions.set(id, mine);
        }
    }

    /** Adopt a subscription that another instance started. */
    #adopt(id: number, one: Listed): void {
        this.#giveWay(id);
        if (one.spec !== undefined) {
            this.subscriptions.set(id, new Subscription(this.host, id, one.spec, one.name));
        } else if (one.name) {
            this.#foreign.set(one.name, id);
        }
    }

    /** Move a local subscription to the next free number: another instance uses this one. */
    #giveWay(id: number): void {
        const mine = this.subscriptions.get(id);
        if (mine === undefined) return;
        this.subscriptions.delete(id);
        mine.id = this.#newId();
        this.subscriptions.set(mine.id, mine);
    }
}

/** Return whether the server's subscription is the local one: by name, or without names by spec. */
function isOf(mine: Subscription, one: Listed): boolean {
    if (mine.name || one.name) return mine.name === one.name;
    const { spec } = one;
    if (spec === undefined) return false;
    return (
        isSameSpec(spec, mine.spec) || (mine.change !== undefined && isSameSpec(spec, mine.change.spec))
    );
}
