/** Versions of a device's sequence of deltas: applied, announced and acknowledged. */

import { StreamError } from "./errors.js";

/** Deltas between separate acks: often enough for a short resume, at negligible cost. */
const ACK_EVERY = 32n;

/** The last applied version. Each delta has the next version. */
export class DeltaSequence {
    /** Version of the last applied delta. */
    version = 0n;
    /** The server's number of the sequence; 0 before the first welcome. */
    epoch = 0n;
    #promised = 0n;
    #acked = 0n;

    /** Whether all deltas that the last welcome announced have arrived. */
    get isComplete(): boolean {
        return this.version >= this.#promised;
    }

    /** Record the version that a welcome announces. If no delta will follow, it counts as applied. */
    welcome(version: bigint, epoch: bigint, isEmpty: boolean): void {
        this.#promised = version;
        this.epoch = epoch;
        if (isEmpty) this.version = version;
    }

    /** Record the version of a delta; return whether to apply the delta. */
    take(version: bigint, isSnapshot: boolean): boolean {
        if (version <= this.version) return false; // a duplicate
        if (version !== this.version + 1n && !isSnapshot) {
            throw new StreamError(
                `delta ${version} follows ${this.version}: the stream has lost something`,
            );
        }
        this.version = version;
        return true;
    }

    /** Whether enough deltas have arrived since the last message to send a separate ack. */
    get isAckDue(): boolean {
        return this.version - this.#acked >= ACK_EVERY;
    }

    /** Return the version to acknowledge, and record it as acknowledged. */
    acknowledged(): bigint {
        this.#acked = this.version;
        return this.version;
    }
}
