/** One reader of the changes of a result. */

import { isSameObject } from "./model.js";
import type { Change, ChangeReason, LiveObject } from "./model.js";
import { Notice } from "./waiting.js";

/** Compares results. Objects are the same only if all their fields are equal. */
export class Watcher {
    readonly noticed = new Notice();
    #seen: readonly LiveObject[] = [];
    #reason: ChangeReason = "subscribed";
    #removals = new Map<bigint, ChangeReason>();

    /** Record that the result may have changed, with the reasons why objects have left it. */
    notice(reason: ChangeReason, removals: ReadonlyMap<bigint, ChangeReason>): void {
        this.#reason = reason;
        const seen = new Set(this.#seen.map((one) => one.id));
        for (const [id, why] of removals) if (seen.has(id)) this.#removals.set(id, why);
        this.noticed.set();
    }

    /** Return the changes since the last call. */
    difference(now: readonly LiveObject[]): Change[] {
        const before = this.#seen;
        const reason = this.#reason;
        const removals = this.#removals;
        this.#seen = now;
        this.#removals = new Map();
        const old = new Map(before.map((one) => [one.id, one]));
        const stayed = new Set(
            now.filter((one) => isSameObject(old.get(one.id), one)).map((one) => one.id),
        );
        const changes: Change[] = [];
        before.forEach((object, rank) => {
            if (stayed.has(object.id)) return;
            changes.push({ kind: "left", object, rank, reason: removals.get(object.id) ?? reason });
        });
        now.forEach((object, rank) => {
            if (!stayed.has(object.id)) changes.push({ kind: "entered", object, rank, reason });
        });
        const stayedBefore = before.filter((one) => stayed.has(one.id));
        let place = 0;
        now.forEach((object, rank) => {
            if (!stayed.has(object.id)) return;
            if (stayedBefore[place]?.id !== object.id)
                changes.push({ kind: "reordered", object, rank, reason });
            place += 1;
        });
        return changes;
    }
}
