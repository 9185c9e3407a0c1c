/** Arguments of another kind, and fields that are misspelt. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { WebSocket } from "ws";
import { connect } from "../src/index.js";
import type { Client, Device, NewObject, Range, Spec } from "../src/index.js";
import { GrpcTransport } from "../src/grpc.js";
import { writeObject } from "../src/publishing.js";
import { FrameServer } from "./frame_server.js";

const HERE = { lon: 14.5, lat: 35.5 };
const TEA = { kind: "topK", keywords: ["tea"], k: 1 } as const;
const FENCE = { kind: "boolean", expression: "tea", moving: true } as const;
const OBJECT = { keywords: ["tea"], ...HERE, ttlMs: 1000 };

let server: FrameServer;
let client: Client;
let device: Device;

beforeEach(async () => {
    server = await FrameServer.start();
    client = connect(server.target, { webSocket: WebSocket });
    device = await client.attach("phone", HERE);
});

afterEach(async () => {
    await client.close();
    await server.stop();
});

/** Leave the types aside, as JavaScript does. */
function untyped<Value>(value: unknown): Value {
    return value as Value;
}

test("attach without a fix", async () => {
    await assert.rejects(client.attach("x", untyped(undefined)), {
        name: "RefusedError",
        field: "options",
        message:
            "options is undefined, must be an object with fields of lon, lat, accuracyM, " +
            "privacyRadiusM, prefetchM, takeOver, waitMs, signal, headingDeg, speedMps",
    });
    await assert.rejects(client.attach("x", untyped([14.5, 35.5])), /: options is an array, must/u);
    await assert.rejects(client.attach("x", untyped({ ...HERE, prefetch_m: 5 })), {
        field: "options.prefetch_m",
    });
    const moving = { ...HERE, headingDeg: 90, speedMps: 1 };
    await client.attach("x", moving); // a fix as `move` takes it
});

test("a search without a place", async () => {
    await assert.rejects(client.search(TEA, untyped(undefined)), { field: "lon" });
});

test("a name in the place of the options of a subscription", async () => {
    await assert.rejects(device.subscribe(TEA, untyped("tea")), {
        name: "RefusedError",
        message: "options is of type string, must be an object with fields of name, signal",
    });
    await assert.rejects(device.subscribe(TEA, untyped({ title: "tea" })), {
        message: "options.title is unknown, must be one of name, signal",
    });
    assert.deepEqual(device.subscriptions, []);
});

for (const [spec, field] of [
    [undefined, "spec"],
    ["tea", "spec"],
    [{ keywords: ["tea"] }, "spec"],
    [{ ...TEA, kind: "toString" }, "spec"],
    [{ ...TEA, distance_scale_m: 2000 }, "spec.distance_scale_m"],
    [{ ...TEA, range: { kind: "circle", radiusM: 5 } }, "spec.range"],
    [{ ...TEA, window: { durationS: 5 } }, "spec.window.durationS"],
    [{ ...TEA, window: 5 }, "spec.window"],
    [FENCE, "spec.boolean.range"],
    [{ ...FENCE, range: { radiusM: 5 } }, "spec.boolean.range"],
    [{ ...FENCE, range: { kind: "circle", radius_m: 5 } }, "spec.boolean.range.radius_m"],
    [{ ...FENCE, range: { kind: "circle", radiusM: 5 }, k: 3 }, "spec.k"],
] as [unknown, string][]) {
    test(`a spec whose ${field} is wrong: ${JSON.stringify(spec)}`, async () => {
        const wrong = untyped<Spec>(spec);
        for (const call of [
            device.subscribe(wrong, { name: "tea" }),
            device.search(wrong),
            client.search(wrong, HERE),
        ]) {
            await assert.rejects(call, { name: "RefusedError", reason: "INVALID_FIELD", field });
        }
        assert.deepEqual(device.subscriptions, []);
    });
}

test("the known fields of specs are accepted, and corners may have others", async () => {
    const corner = { ...HERE, altM: 9 };
    const ranges: Range[] = [
        { kind: "circle", radiusM: 5, center: corner },
        { kind: "bounds", lonMin: 14, latMin: 35, lonMax: 15, latMax: 36 },
        { kind: "polygon", outer: [corner, { lon: 14.6, lat: 35.5 }, { ...HERE, lat: 35.6 }], holes: [] },
    ];
    for (const range of ranges) {
        const spec = { ...FENCE, range, moving: false, dwellMs: 0, region: "anchored" } as const;
        await assert.rejects(client.search({ ...spec, window: { count: 3 } }, HERE), /status 426/u);
    }
    const spec = { ...TEA, alpha: 0.5, similarity: "dice", distanceScaleM: 5 } as const;
    const window = { durationMs: 3 };
    await assert.rejects(client.search({ ...spec, region: "anchored", window }, HERE), /status 426/u);
});

test("one object to publish is a list of one", async () => {
    await assert.rejects(client.publish(OBJECT), /status 426/u);
    await assert.rejects(client.publish(untyped({ ...OBJECT, ttl_s: 5 })), {
        message:
            "objects[0].ttl_s is unknown, must be one of keywords, lon, lat, area, ttlMs, payload, key",
    });
});

for (const [object, field] of [
    [undefined, ""],
    ["tea", ""],
    [{ ...OBJECT, name: "a" }, ".name"],
    [{ ...OBJECT, area: { outer: [] } }, ".area"],
    [{ ...OBJECT, area: { kind: "bounds", lon_min: 14 } }, ".area.lon_min"],
] as [unknown, string][]) {
    test(`an object whose ${field || "kind"} is wrong: ${JSON.stringify(object)}`, () => {
        assert.throws(() => writeObject(untyped<NewObject>(object), "objects[7]"), {
            name: "RefusedError",
            field: `objects[7]${field}`,
        });
    });
}

test("options of a client, without its token in the error", () => {
    for (const [options, message] of [
        ["secret", "options is of type string, must be an object with fields of "],
        [{ Token: "secret" }, "options.Token is unknown, must be one of "],
    ] as const) {
        assert.throws(() => connect(server.target, untyped(options)), {
            message: `${message}token, webSocket, insecure`,
        });
    }
    for (const [options, field] of [
        [{ rootCertificates: Uint8Array.of(1) }, "options.rootCertificates"],
        [{ tls: true }, "tls"],
        [{ tls: { root_certificates: Uint8Array.of(1) } }, "tls.root_certificates"],
    ] as const) {
        assert.throws(() => new GrpcTransport("localhost", untyped(options)), { field });
    }
});
