/** The stream of a device: what arrives on an earlier one, and the reason for which there is none. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Clock } from "../src/core/clock.js";
import { DeviceSession } from "../src/core/device_session.js";
import { RefusedError } from "../src/core/errors.js";
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
    /** With which further streams are refused. */
    refusal: RefusedError | undefined;
    /** The version that welcomes announce. No delta follows. */
    version = 0n;

    open(_token: string, events: StreamEvents): Stream {
        this.streams.push(events);
        const { refusal } = this;
        queueMicrotask(() => (refusal === undefined ? events.onOpen() : events.onClose(refusal)));
        return {
            send: (message) => {
                const isHello = fromBinary(AttachRequestSchema, message).command.case === "hello";
                if (isHello) queueMicrotask(() => this.deliver(events, welcome(this.version)));
            },
            end: () => events.onClose(new Error("ended")),
            cancel: () => events.onClose(new Error("cancelled")),
        };
    }

    deliver(events: StreamEvents | undefined, event: Event): void {
        events?.onMessage(toBinary(AttachResponseSchema, create(AttachResponseSchema, { event })));
    }

    renew(): void {}

    close(): void {}
}

function welcome(version: bigint): Event {
    const value = { frame: FRAME, timeMs: 1_000_000n, epoch: 5n, version, resumed: true };
    return { case: "welcome", value };
}

function sessionOn(stream: DeviceStream): DeviceSession {
    return new DeviceSession({
        deviceId: "phone",
        nonce: new Uint8Array(8),
        clock: new Clock(),
        send: stream.send,
        location: new Location({ lon: 14.5, lat: 35.5 }),
    });
}

/** Time that passes at once, without chance; resolves when what follows from it has happened. */
function virtualTime(t: TestContext): (ms: number) => Promise<void> {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    let nowMs = 0;
    for (const clock of [performance, Date]) t.mock.method(clock, "now", () => nowMs);
    t.mock.method(Math, "random", () => 1);
    return async (ms) => {
        nowMs += ms;
        t.mock.timers.tick(ms);
        await new Promise(setImmediate);
    };
}

test("what the former server still sends does not reach the device", async () => {
    const network = new Network();
    const stream = new DeviceStream(network, "");
    const session = sessionOn(stream);
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

test("a device without a stream has the reason", async () => {
    const network = new Network();
    const stream = new DeviceStream(network, () => "expired");
    const session = sessionOn(stream);
    await stream.start(session);
    assert.equal(session.offlineError, undefined);
    const refusal = { field: "token", value: "expired", limit: "valid" };
    network.refusal = new RefusedError({ reason: "TOKEN_EXPIRED", ...refusal });
    stream.rebuild();
    while (session.offlineError !== network.refusal) {
        await new Promise((resolve) => setTimeout(resolve, 1));
    }
    assert.equal(session.isOnline, false);
    assert.equal(session.error, undefined);
    network.refusal = undefined;
    while (!session.isOnline) await new Promise((resolve) => setTimeout(resolve, 1));
    assert.equal(session.offlineError, undefined);
    await stream.close();
    assert.equal(session.offlineError, session.error);
});

test("waits grow until the device has caught up, or a stream has lasted", async (t) => {
    const pass = virtualTime(t);
    const network = new Network();
    const stream = new DeviceStream(network, "");
    const session = sessionOn(stream);
    await stream.start(session);
    /** Break the stream; return the time until the next one is opened. */
    const broken = async (): Promise<number> => {
        const { length } = network.streams;
        network.streams.at(-1)?.onClose(new Error("broken"));
        await pass(0);
        let waitedMs = 0;
        for (; network.streams.length === length; waitedMs += 100) await pass(100);
        assert.equal(session.isOnline, true);
        return waitedMs;
    };
    network.version = 1n;
    const waits: number[] = [];
    for (let i = 0; i < 7; i += 1) waits.push(await broken());
    assert.deepEqual(waits, [200, 400, 800, 1600, 3200, 5000, 5000]);
    await pass(5100);
    assert.deepEqual([await broken(), await broken()], [200, 400]);
    network.version = 0n;
    assert.deepEqual([await broken(), await broken(), await broken()], [800, 200, 200]);
    await stream.close();
});
