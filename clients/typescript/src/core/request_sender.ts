/** Builds and sends all requests of a device, with the position that `Location` shares. */

import { create } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { AttachRequestSchema } from "../generated/nearcast/v1/device_service_pb.js";
import type { AttachRequest } from "../generated/nearcast/v1/device_service_pb.js";
import type { Clock } from "./clock.js";
import type { DeltaSequence } from "./delta_sequence.js";
import { UNKNOWN_FRAME } from "./frame.js";
import type { Location, SharedLocation } from "./location.js";
import type { Counters } from "./model.js";
import { writeSpec } from "./specs.js";
import type { Subscription } from "./subscription.js";

/** Heading, clockwise from north, and speed of a device. */
export interface Motion {
    readonly headingDeg?: number | undefined;
    readonly speedMps?: number | undefined;
}

type Command = NonNullable<MessageInitShape<typeof AttachRequestSchema>["command"]>;

export class RequestSender {
    frame = UNKNOWN_FRAME;
    /** Largest margin that the server accepts. The margin of a poorer fix is cut to it. */
    marginMMax = Infinity;
    /** Steady time of the last request. */
    sentMs = 0;
    #reportSequence = 0n;
    #pingNumber = 0n;

    constructor(
        readonly location: Location,
        readonly send: (request: AttachRequest) => void,
        readonly counters: Counters,
        readonly clock: Clock,
        readonly versions: DeltaSequence,
    ) {}

    /** Send a hello with the device id and the applied version. */
    hello(deviceId: string, instanceNonce: Uint8Array, takeOver: boolean): void {
        const version = this.versions.acknowledged();
        const { epoch } = this.versions;
        const shown = this.#shown();
        this.#send({
            case: "hello",
            value: { deviceId, instanceNonce, version, ...placed(shown), epoch, takeOver },
        });
    }

    /** Request a subscription, or its change to another spec. */
    subscribe(subscription: Subscription): void {
        const { change } = subscription;
        const spec = writeSpec(change?.spec ?? subscription.spec);
        change?.sent();
        const shown = this.#shown();
        subscription.markSent(shown.shared);
        const value = {
            subscriptionId: subscription.id,
            spec,
            ...placed(shown),
            name: subscription.name,
        };
        this.#send({ case: "subscribe", value });
    }

    /** Request the end of a subscription. */
    unsubscribe(subscriptionId: number): void {
        this.#send({ case: "unsubscribe", value: { subscriptionId } });
    }

    /** Report the position for these subscriptions. A private device sends no heading and speed. */
    report(subscriptions: readonly Subscription[], motion: Motion = {}): void {
        this.#reportSequence += 1n;
        this.counters.reports += 1;
        const shown = this.#shown();
        for (const one of subscriptions) one.markSent(shown.shared, this.#reportSequence);
        const { headingDeg, speedMps } = this.location.isPrivate ? {} : motion;
        this.#send({
            case: "report",
            value: {
                sequence: this.#reportSequence,
                ...placed(shown),
                subscriptionIds: subscriptions.map((one) => one.id),
                ...(headingDeg !== undefined && { headingDeg }),
                ...(speedMps !== undefined && { speedMps }),
                version: this.versions.acknowledged(),
            },
        });
    }

    /** Acknowledge the applied deltas. */
    ack(): void {
        this.#send({ case: "ack", value: { version: this.versions.acknowledged() } });
    }

    /** Send a ping; return its number, which the pong repeats. */
    ping(): bigint {
        this.#pingNumber += 1n;
        const value = { number: this.#pingNumber, version: this.versions.acknowledged() };
        this.#send({ case: "ping", value });
        return this.#pingNumber;
    }

    #shown(): Shown {
        const shared = this.location.shared(this.frame);
        return { shared, marginM: Math.min(shared.marginM, this.marginMMax) };
    }

    #send(command: Command): void {
        this.sentMs = this.clock.steadyMs();
        this.send(create(AttachRequestSchema, { command }));
    }
}

interface Shown {
    readonly shared: SharedLocation;
    readonly marginM: number;
}

function placed({ shared, marginM }: Shown): { position: { lon: number; lat: number }; marginM: number } {
    return { position: { lon: shared.lon, lat: shared.lat }, marginM };
}
