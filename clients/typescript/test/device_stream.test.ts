/** What arrives on an earlier stream of a device, after another one has opened. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Clock } from "../src/core/clock.js";
import { DeviceSession } from "../src/core/device_session.js";
import { Location } from "../src/core/location.js";
import {
    AttachRequestSchema,
    AttachResponseSchema,
} from "../src/generated/nearcast/v1/device_service_pb.js";
import { ErrorReason } from "../src/generated/nearcast/v1/errors_pb.js";
import { DeviceStream } from "../src/transport/device_stream.js";
import type { Stream, StreamEvents, Transport } from "../src/transport/transport.js";

type Event = NonNullable<MessageInitShape<typeof AttachResponseSchema>["event"]>;

const AREA = { lonMin: 14, latMin: 35, lonMax: 15, latMax: 36, lon0Deg: 14.5, lat0Deg: 35.5 };
const FRAME = { ...AREA, xMPerDeg: 90_525.6, yMPerDeg: 111_195, maxdistM: 143_384 };

/** A transport whose streams still deliver what is under way when they are cancelled. */
class Network implements Transport {
    readonly isConfidential = true;
    readonly streams: StreamEvents[] = [];

    open(_token: string, events: StreamEvents): Stream {
        this.streams.push(events);
        queueMicrotask(() => events.onOpen());
        return {
            send: (message) => {
                const isHello = fromBinary(AttachRequestSchema, message).command.case === "hello";
                if (isHello) queueMicrotask(() => this.deliver(events, welcome()));
            },
            end: () => {},
            cancel: () => events.onClose(new Error("cancelled")),
        };
    }

    deliver(events: StreamEvents | undefined, event: Event): void {
        events?.onMessage(toBinary(AttachResponseSchema, create(AttachResponseSchema, { event })));
    }

    renew(): void {}

    close(): void {}
}

function welcome(): Event {
    return { case: "welcome", value: { frame: FRAME, timeMs: 1_000_000n, epoch: 5n } };
}

test("what the former server still sends does not reach the device", async () => {
    const network = new Network();
    const stream = new DeviceStream(network, "");
    const session = new DeviceSession({
        deviceId: "phone",
        nonce: new Uint8Array(8),
        clock: new Clock(),
        send: stream.send,
        location: new Location({ lon: 14.5, lat: 35.5 }),
    });
    await stream.start(session);
    stream.rebuild();
    while (network.streams.length < 2 || !session.isOnline) {
        await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const [former, current] = network.streams;
    network.deliver(former, { case: "lag", value: { offset: 7n } });
    assert.equal(session.lagOffset, 0n);
    const error = { reason: ErrorReason.FORGOTTEN, message: "forgotten" };
    network.deliver(former, { case: "detached", value: { error } });
    assert.equal(session.error, undefined);
    assert.equal(session.isOnline, true);
    network.deliver(current, { case: "lag", value: { offset: 9n } });
    assert.equal(session.lagOffset, 9n);
    network.deliver(current, { case: "detached", value: { error } });
    assert.match(String(session.error), /forgotten/u);
});
