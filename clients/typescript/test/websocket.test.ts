/** Devices over real WebSockets, with real messages. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:net";
import type { AddressInfo, Socket } from "node:net";
import { afterEach, beforeEach, test } from "node:test";
import type { TestContext } from "node:test";
import { Server, ServerCredentials } from "@grpc/grpc-js";
import { WebSocket } from "ws";
import {
    ClosedError,
    RefusedError,
    UnavailableError,
    WebSocketTransport,
    connect,
} from "../src/index.js";
import type {
    Change,
    Client,
    NewObject,
    Retraction,
    Subscription,
    SubscriptionState,
    WebSocketConstructor,
} from "../src/index.js";
import type { AttachRequest } from "../src/generated/nearcast/v1/device_service_pb.js";
import { ErrorReason } from "../src/generated/nearcast/v1/errors_pb.js";
import { Cause } from "../src/generated/nearcast/v1/subscriptions_pb.js";
import { FrameServer, answerAll } from "./frame_server.js";

const HERE = { lon: 14.5, lat: 35.5 };
const PATIENCE_MS = 60_000;
const TEA = { kind: "topK", keywords: ["tea"], k: 1 } as const;

// The constructors of the platforms are accepted as they are.
const fromPackage: WebSocketConstructor = WebSocket;
const fromPlatform: WebSocketConstructor | undefined = (
    globalThis as { WebSocket?: typeof globalThis.WebSocket }
).WebSocket;
assert.ok(fromPackage !== fromPlatform);

let server: FrameServer;
let client: Client;

beforeEach(async () => {
    server = await FrameServer.start();
    client = connected();
});

afterEach(async () => {
    await client.close();
    await server.stop();
});

function connected(options: Parameters<typeof connect>[1] = {}): Client {
    return connect(server.target, { webSocket: fromPackage, ...options });
}

function ids(subscription: Subscription): bigint[] {
    return subscription.results().map((match) => match.object.id);
}

async function until(subscription: Subscription, state: SubscriptionState): Promise<void> {
    for await (const one of subscription.states()) if (one === state) return;
}

/** Wait for the next change of a result. */
async function next(changes: AsyncGenerator<Change, void>): Promise<Change> {
    const { value, done } = await changes.next();
    assert.ok(done !== true && value !== undefined);
    return value;
}

function goAway(reason: keyof typeof ErrorReason, retryAfterMs = 0n): void {
    const error = { reason: ErrorReason[reason], message: "because", retryAfterMs };
    server.send({ case: "goAway", value: { error } });
    server.close(1008);
}

test("the port of a server is not a gateway", async () => {
    const grpc = new Server();
    const port = await new Promise<number>((resolve, reject) => {
        grpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
            error === null ? resolve(bound) : reject(error),
        );
    });
    const wrong = connect(`ws://127.0.0.1:${port}`, { webSocket: fromPackage });
    await assert.rejects(wrong.attach("phone", HERE), {
        name: "UnavailableError",
        message: /closed with code 1006 before it was open.*; possible causes: no gateway at this address/u,
    });
    await wrong.close();
    grpc.forceShutdown();
});

test("a first result, changes, silence and a report", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA, { name: "tea" });
    assert.equal(subscription.state, "exact");
    assert.deepEqual(ids(subscription), [7n]);
    const changes = subscription.changes();
    assert.deepEqual(await next(changes).then(({ kind, object }) => [kind, object.id]), ["entered", 7n]);
    device.move({ lon: 14.501, lat: 35.5 });
    assert.deepEqual(server.kinds(), ["hello", "subscribe"], "within the region nothing is sent");
    server.delta([3n]);
    assert.equal((await next(changes)).kind, "left");
    assert.deepEqual(await next(changes).then(({ kind, reason }) => [kind, reason]), [
        "entered",
        "published",
    ]);
    device.move({ lon: 14.52, lat: 35.5, headingDeg: 90, speedMps: 2 });
    await until(subscription, "exact");
    assert.deepEqual(server.kinds(), ["hello", "subscribe", "report"]);
    assert.equal(device.counters.reports, 1);
    assert.ok(device.counters.bytesSent > 0 && device.counters.bytesReceived > device.counters.bytesSent);
});

test("an app that starts again at another place gets the result of that place", async () => {
    const before = await client.attach("phone", HERE);
    await before.subscribe(TEA, { name: "tea" });
    await before.detach();
    const reported = new Promise<AttachRequest>((resolve) => {
        server.answer = (one, request) => {
            if (request.command.case === "report") resolve(request);
            if (request.command.case !== "hello") return;
            one.version += 1n; // that of the snapshot which follows
            one.welcome(false);
            one.version -= 1n;
            one.delta([7n], { snapshot: true, cause: Cause.RESUMED });
        };
    });
    const device = await client.attach("phone", { lon: 14.52, lat: 35.5 });
    const subscribed = device.subscribe(TEA, { name: "tea" });
    answerAll(server, await reported);
    const subscription = await subscribed;
    assert.equal(subscription.state, "exact");
    assert.equal(await device.subscribe(TEA, { name: "tea" }), subscription);
    assert.deepEqual(server.kinds(), ["hello", "subscribe", "hello", "report"]);
    server.cut();
    await until(subscription, "offline");
    assert.equal(await device.subscribe(TEA, { name: "tea" }), subscription, "it does not wait offline");
});

test("a device that is detached while a call waits for its result", async () => {
    const device = await client.attach("phone", HERE);
    await device.subscribe(TEA, { name: "tea" });
    server.answer = () => {};
    device.move({ lon: 14.52, lat: 35.5 });
    const refused = assert.rejects(device.subscribe(TEA, { name: "tea" }), ClosedError);
    await device.detach();
    await refused;
});

test("sync waits for the response to a report", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    device.move({ lon: 14.52, lat: 35.5 });
    assert.equal(subscription.state, "stale");
    await client.sync();
    assert.equal(subscription.state, "exact");
    assert.deepEqual(server.kinds(), ["hello", "subscribe", "report", "ping"]);
});

test("the exact result of a new position waits for the response", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    device.move({ lon: 14.52, lat: 35.5 });
    assert.equal(subscription.state, "stale");
    assert.equal((await subscription.exactResults()).length, 1);
    assert.equal(subscription.state, "exact");
    await device.detach();
    await assert.rejects(subscription.exactResults(), ClosedError);
});

for (const wanted of ["an exact result", "a search"] as const) {
    test(`${wanted} is exact where the device is, also if it moves meanwhile`, async () => {
        for (let steps = 0; steps < 25; steps += 1) {
            [server.version, server.listed] = [0n, []];
            let moveOnce = () => {};
            client = connect(new Interrupted(server.target, fromPackage, steps, () => moveOnce()));
            const device = await client.attach("phone", HERE);
            moveOnce = () => {
                const { deltas, moves } = device.counters;
                const isFirst = deltas === 1 && moves === 0 && device.error === undefined;
                if (isFirst) device.move({ lon: 14.52, lat: 35.5 });
            };
            const read = async () =>
                wanted === "a search" ? device.search(TEA) : (await device.subscribe(TEA)).exactResults();
            const isRight = await read().then(
                ([match]) => match?.distanceM === 0 || device.counters.deltas > 1,
            );
            assert.ok(isRight, `the result of the former place, ${steps} steps after the message`);
            await client.close();
        }
    });
}

/** A transport that calls back a number of microtasks after each message. */
class Interrupted extends WebSocketTransport {
    constructor(
        target: string,
        socket: WebSocketConstructor,
        readonly steps: number,
        readonly interrupt: () => void,
    ) {
        super(target, socket);
    }

    override open(...[token, events]: Parameters<WebSocketTransport["open"]>) {
        const interrupt = async () => {
            for (let i = 0; i < this.steps; i += 1) await undefined;
            this.interrupt();
        };
        return super.open(token, {
            onOpen: () => events.onOpen(),
            onClose: (error) => events.onClose(error),
            onMessage: (message) => {
                events.onMessage(message);
                void interrupt();
            },
        });
    }
}

test("sync waits for a device that reconnects", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    server.cut();
    await until(subscription, "offline");
    await client.sync();
    assert.equal(subscription.state, "exact");
});

test("the time of a test ends objects", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    const [match] = subscription.results();
    assert.ok(match !== undefined);
    client.observeTime(match.object.expiryMs - 1);
    assert.equal(subscription.results().length, 1);
    client.observeTime(match.object.expiryMs);
    assert.deepEqual(subscription.results(), []);
});

test("the handshake has the subprotocol and the path, and the token as another subprotocol", async () => {
    client = connected({ token: "abc.def-ghi_" });
    await client.attach("phone", HERE);
    const [handshake] = server.handshakes;
    assert.deepEqual(handshake, { protocols: "nearcast.v1,bearer.abc.def-ghi_", url: "/v1/attach" });
});

test("a token that cannot be a subprotocol is the first frame", async () => {
    client = connected({ token: async () => "with/slash=" });
    await client.attach("phone", HERE);
    assert.equal(server.handshakes[0]?.protocols, "nearcast.v1");
    assert.equal(server.handshakes[0]?.text, "with/slash=");
});

test("a token is not sent in the clear to another machine", () => {
    assert.throws(
        () => connect("ws://near.example", { token: "t", webSocket: fromPackage }),
        RefusedError,
    );
    connect("ws://near.example", { token: "t", webSocket: fromPackage, insecure: true });
    connect("wss://near.example", { token: "t", webSocket: fromPackage });
});

test("several addresses are each checked", () => {
    const options = { webSocket: fromPackage, token: "secret" };
    assert.throws(() => connect([], options), { field: "target" });
    assert.throws(() => connect(["ws://127.0.0.1", "http://127.0.0.1"], options), { field: "target" });
    assert.throws(() => connect(["ws://127.0.0.1", "ws://10.0.0.1"], options), /could read the token/u);
});

test("addresses that are none of a gateway are refused", () => {
    for (const target of [
        "near.example",
        "http://near.example",
        "wss://near.example?token=1",
        "wss://me@near.example",
    ]) {
        assert.throws(() => connect(target, { webSocket: fromPackage }), { field: "target" });
    }
});

test("a broken connection is resumed, with the version and the epoch", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    const missed: () => void = () => server.delta([2n]);
    server.answer = (one, request) => {
        answerAll(one, request);
        if (request.command.case === "hello") missed();
    };
    const changes = subscription.changes();
    await next(changes);
    server.cut();
    assert.equal((await next(changes)).kind, "left");
    assert.equal((await next(changes)).object.id, 2n);
    const hello = server.requests.at(-1)?.command;
    assert.ok(
        hello?.case === "hello" && hello.value.version === 1n && hello.value.epoch === server.epoch,
    );
});

test("a fence is resumed as it is, also if the server takes a coordinate for 0", async () => {
    const [x, y] = [14.5, 1e-18];
    const outer = [
        { lon: x, lat: y, altM: 99 },
        { lon: x + 0.01, lat: 0 },
        { lon: x, lat: 0.01 },
    ];
    server.answer = (one, request) => {
        if (request.command.case !== "subscribe") answerAll(one, request);
        else {
            const { subscriptionId, spec } = request.command.value;
            if (spec !== undefined) one.listed = [{ subscriptionId, spec }];
            const bound = { case: "slack", value: { slackM: Infinity } } as const;
            one.delta([], { subscriptionId, snapshot: true, cause: Cause.SUBSCRIBED, bound });
        }
    };
    const device = await client.attach("phone", HERE);
    const fence = { kind: "boolean", expression: "tea", range: { kind: "polygon", outer } } as const;
    const subscription = await device.subscribe(fence);
    const { kind } = server.listed[0]?.spec ?? {};
    assert.ok(kind?.case === "boolean" && kind.value.range?.case === "polygon");
    const corner = kind.value.range.value.outer?.vertices?.[0];
    assert.ok(corner?.lat === y);
    corner.lat = 0;
    server.cut();
    await until(subscription, "offline");
    await until(subscription, "exact");
    assert.deepEqual(server.kinds(), ["hello", "subscribe", "hello"]);
});

test("a lost delta is noticed, and the device resumes", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    server.version += 1n;
    server.delta([3n]);
    server.version = 1n;
    await until(subscription, "offline");
    await until(subscription, "exact");
    assert.deepEqual(server.kinds(), ["hello", "subscribe", "hello"]);
    assert.deepEqual(ids(subscription), [7n]);
});

test("a device resumes after a frame that is no message", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    server.sendGarbage();
    await until(subscription, "offline");
    await until(subscription, "exact");
    assert.equal(server.handshakes.length, 2);
});

test("a delta that the SDK cannot process ends the device: it would lack the change", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    const version = server.version + 1n;
    server.send({ case: "delta", value: { version, subscriptionId: subscription.id, add: [{}] } });
    server.version = version; // so that a device that resumes lacks no version
    await until(subscription, "ended");
    assert.match(String(device.error), /^NearcastError: an internal error/u);
    assert.equal(server.handshakes.length, 1);
});

test("a device goes on elsewhere when the gateway drains", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    goAway("DRAINING");
    await until(subscription, "offline");
    await until(subscription, "exact");
    assert.equal(server.handshakes.length, 2);
});

test("a device is offline after a GoAway, and cancels a stream that does not end", async () => {
    class NeverEnding extends WebSocketTransport {
        override open(...args: Parameters<WebSocketTransport["open"]>) {
            const stream = super.open(...args);
            stream.end = () => {};
            return stream;
        }
    }
    client = connect(new NeverEnding(server.target, fromPackage));
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    server.send({ case: "goAway", value: { error: { reason: ErrorReason.DRAINING } } });
    await until(subscription, "offline");
    assert.equal(server.handshakes.length, 1);
    await until(subscription, "exact");
    assert.equal(server.handshakes.length, 2);
});

test("a device that is new gives up a minute after the first invitation to retry", async (t) => {
    const now = performance.now.bind(performance);
    let aheadMs = 0;
    t.mock.method(performance, "now", () => now() + aheadMs);
    server.onConnect = () => {
        aheadMs += 61_000;
        goAway("RECOVERING");
    };
    await assert.rejects(client.attach("phone", HERE), { reason: "RECOVERING" });
    assert.equal(server.handshakes.length, 2);
});

test("a device that is new waits for a server that is starting", async () => {
    server.onConnect = () => {
        if (server.handshakes.length < 3) goAway("RECOVERING");
    };
    await client.attach("phone", HERE);
    assert.equal(server.handshakes.length, 3);
});

test("refusals of the connection", async () => {
    server.onConnect = () => goAway("UNAUTHENTICATED");
    await assert.rejects(client.attach("phone", HERE), { reason: "UNAUTHENTICATED", message: "because" });
    assert.equal(server.handshakes.length, 1);
    server.onConnect = () => {
        if (server.handshakes.length === 2) goAway("RATE_LIMITED", 20n);
    };
    await client.attach("phone", HERE);
    assert.equal(server.handshakes.length, 3);
});

test("a token that ends is replaced by another one", async () => {
    let number = 0;
    client = connected({ token: () => `token-${(number += 1)}` });
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    goAway("TOKEN_EXPIRED");
    await until(subscription, "offline");
    await until(subscription, "exact");
    assert.equal(server.handshakes[1]?.protocols, "nearcast.v1,bearer.token-2");
});

test("a token that ends and is all there is ends the device", async () => {
    client = connected({ token: "one" });
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    goAway("TOKEN_EXPIRED");
    await until(subscription, "ended");
    assert.ok(device.error instanceof RefusedError && device.error.reason === "TOKEN_EXPIRED");
    assert.throws(() => device.move(HERE), { reason: "TOKEN_EXPIRED" });
});

test("a device that was online asks its function for tokens until one is known", async () => {
    client = connected({ token: () => "one" });
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    server.onConnect = () => {
        if (server.handshakes.length < 4) goAway("UNAUTHENTICATED");
    };
    client.networkChanged();
    const reason = () =>
        device.offlineError instanceof RefusedError ? device.offlineError.reason : undefined;
    await eventually(() => reason() === "UNAUTHENTICATED");
    await eventually(() => subscription.state === "exact");
    assert.equal(server.handshakes.length, 4);
    server.onConnect = () => goAway("PERMISSION_DENIED");
    client.networkChanged();
    await until(subscription, "ended");
    assert.equal(reason(), "PERMISSION_DENIED");
    assert.equal(server.handshakes.length, 5);
});

test("an unknown token that is all there is ends a device that was online", async () => {
    client = connected({ token: "one" });
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    server.onConnect = () => goAway("UNAUTHENTICATED");
    client.networkChanged();
    await until(subscription, "ended");
    assert.ok(device.error instanceof RefusedError && device.error.reason === "UNAUTHENTICATED");
});

test("a new device whose token is not known fails, also with a function", async () => {
    client = connected({ token: () => "one" });
    server.onConnect = () => goAway("UNAUTHENTICATED");
    await assert.rejects(client.attach("phone", HERE), { reason: "UNAUTHENTICATED" });
    assert.equal(server.handshakes.length, 1);
});

test("blanks and newlines around a token do not matter", async () => {
    client = connected({ token: () => " one\n" });
    await client.attach("phone", HERE);
    assert.equal(server.handshakes[0]?.protocols, "nearcast.v1,bearer.one");
});

test("a function that returns no token fails a new device", async () => {
    client = connected({ token: () => undefined as unknown as string });
    await assert.rejects(client.attach("phone", HERE), UnavailableError);
    assert.equal(server.handshakes.length, 0);
});

test("a token function that does not return delays neither a signal nor close", async () => {
    client = connected({ token: () => new Promise<string>(() => {}) });
    const stop = new AbortController();
    const { signal } = stop;
    const attached = client.attach("phone", { ...HERE, signal });
    const retracted = client.retract({ keys: ["a"] }, { signal });
    stop.abort(new Error("enough"));
    await assert.rejects(attached, /enough/u);
    await assert.rejects(retracted, /enough/u);
    const ended = assert.rejects(client.attach("tablet", HERE), ClosedError);
    await client.close();
    await ended;
});

test("a token function that does not return is called again when the network has changed", async () => {
    let calls = 0;
    const token = () => ((calls += 1) % 2 === 0 ? `token-${calls}` : new Promise<string>(() => {}));
    client = connected({ token });
    const attached = client.attach("phone", { ...HERE, signal: AbortSignal.timeout(PATIENCE_MS) });
    await eventually(() => calls === 1);
    client.networkChanged();
    const device = await attached;
    const subscription = await device.subscribe(TEA);
    client.networkChanged();
    await eventually(() => calls === 3);
    client.networkChanged();
    await eventually(() => subscription.state === "exact");
    assert.deepEqual(
        server.handshakes.map(({ protocols }) => protocols),
        ["nearcast.v1,bearer.token-2", "nearcast.v1,bearer.token-4"],
    );
});

test("a network that changes as the token arrives leaves no stream behind", async () => {
    for (let steps = 0; steps < 8; steps += 1) {
        let calls = 0;
        const soon = async () => {
            for (let i = 0; i < steps; i += 1) await undefined;
            client.networkChanged();
        };
        const token = async () => {
            if ((calls += 1) === 1) void soon();
            return "token";
        };
        client = connected({ token });
        await client.attach("phone", HERE);
        await client.close();
    }
    await eventually(() => server.closed.length === server.handshakes.length);
});

test("a WebSocket that the platform refuses fails a new device", async () => {
    class Refusing extends WebSocket {
        constructor(url: string, protocols: string[]) {
            super(url, protocols.concat("not valid"));
        }
    }
    client = connected({ webSocket: Refusing });
    await assert.rejects(client.attach("phone", HERE), UnavailableError);
});

test("a server that cannot be reached fails a new device at once", async () => {
    await server.stop();
    await assert.rejects(client.attach("phone", HERE), UnavailableError);
    server = await FrameServer.start();
});

test("a device that another instance uses is attached when it is free", async () => {
    server.answer = (one, request) => {
        if (one.requests.length > 2) return answerAll(one, request);
        const error = { reason: ErrorReason.DEVICE_IN_USE, retryAfterMs: 10n };
        one.send({ case: "rejection", value: { command: 1, error } });
        return undefined;
    };
    await client.attach("phone", { ...HERE, takeOver: true });
    assert.equal(server.requests.length, 3);
    const [hello] = server.requests;
    assert.ok(hello?.command.case === "hello" && hello.command.value.takeOver);
    await assert.rejects(
        (async () => {
            server.requests.length = 0;
            await client.attach("tablet", { ...HERE, waitMs: 0 });
        })(),
        { reason: "DEVICE_IN_USE" },
    );
});

test("a private device that waits to attach shows one position", async () => {
    server.answer = (one, request) => {
        if (one.requests.length > 1) return answerAll(one, request);
        const error = { reason: ErrorReason.DEVICE_IN_USE, retryAfterMs: 10n };
        one.send({ case: "rejection", value: { command: 1, error } });
        return undefined;
    };
    await client.attach("phone", { ...HERE, privacyRadiusM: 500 });
    const [first, second] = server.requests.map(({ command }) => {
        assert.ok(command.case === "hello");
        return command.value.position;
    });
    assert.ok(first !== undefined && second !== undefined);
    assert.deepEqual([first.lon, first.lat], [second.lon, second.lat]);
    assert.notDeepEqual([first.lon, first.lat], [HERE.lon, HERE.lat]);
});

test("a device that is taken over ends, and closes its connection", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    server.send({
        case: "detached",
        value: { error: { reason: ErrorReason.SUPERSEDED, message: "taken over" } },
    });
    server.delta([3n]);
    await until(subscription, "ended");
    assert.ok(subscription.error instanceof RefusedError && subscription.error.reason === "SUPERSEDED");
    await device.detach(); // after which all messages have arrived
    assert.equal(device.counters.deltas, 1, "what follows the end is ignored");
    await assert.rejects(device.subscribe(TEA), { reason: "SUPERSEDED" });
});

test("a device that was detached for silence says hello on the same connection", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    server.send({ case: "detached", value: { error: { reason: ErrorReason.SILENT } } });
    server.delta([5n]); // of the conversation that has ended
    server.version -= 1n;
    await until(subscription, "offline");
    await until(subscription, "exact");
    assert.deepEqual(server.kinds(), ["hello", "subscribe", "hello"]);
    assert.equal(server.handshakes.length, 1);
    assert.deepEqual(ids(subscription), [7n]);
});

test("a device whose server is another one connects again", async () => {
    server.answer = (one, request) => {
        if (one.requests.length > 1) return answerAll(one, request);
        const error = { reason: ErrorReason.ANOTHER_SERVER, server: "10.0.0.1:7433" };
        one.send({ case: "rejection", value: { command: 1, error } });
        return undefined;
    };
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    assert.equal(server.handshakes.length, 2);
    for (const reason of ["ANOTHER_SERVER", "RECOVERING"] as const) {
        server.send({ case: "detached", value: { error: { reason: ErrorReason[reason] } } });
        server.delta([5n]); // of the conversation that has ended
        server.version -= 1n;
        await until(subscription, "offline");
        await until(subscription, "exact");
        assert.deepEqual(ids(subscription), [7n]);
    }
    assert.equal(server.handshakes.length, 4);
});

test("a device that is new gives up when servers name others for a minute", async (t) => {
    const now = performance.now.bind(performance);
    let aheadMs = 0;
    t.mock.method(performance, "now", () => now() + aheadMs);
    server.answer = (one) => {
        aheadMs += 31_000;
        one.send({ case: "rejection", value: { command: 1, error: { reason: ErrorReason.ANOTHER_SERVER } } });
    };
    await assert.rejects(client.attach("phone", HERE), { reason: "ANOTHER_SERVER" });
    assert.equal(server.handshakes.length, 3);
});

test("of several gateways a device uses one that can be reached", async () => {
    const stopped = await FrameServer.start();
    const gone = stopped.target;
    await stopped.stop();
    const targets = [gone, server.target];
    for (let i = 0; i < 10; i += 1) {
        const one = connect(targets, { webSocket: fromPackage });
        await one.attach("phone", HERE);
        await one.close();
    }
    assert.equal(server.handshakes.length, 10);
    const none = connect([gone, gone], { webSocket: fromPackage });
    await assert.rejects(none.attach("phone", HERE), UnavailableError);
    await none.close();
});

test("a device goes to another gateway when its connection breaks", async () => {
    const other = await FrameServer.start();
    const two = connect([server.target, other.target], { webSocket: fromPackage });
    const subscription = await (await two.attach("phone", HERE)).subscribe(TEA);
    for (let i = 0; i < 4; i += 1) {
        const isFirst = server.handshakes.length > other.handshakes.length;
        const [used, next] = isFirst ? [server, other] : [other, server];
        used.handshakes.length = next.handshakes.length = 0;
        next.version = used.version;
        used.close(1012);
        await until(subscription, "offline");
        await until(subscription, "exact");
        assert.deepEqual([used.handshakes.length, next.handshakes.length], [0, 1]);
    }
    await two.close();
    await other.stop();
});

/** Wait until a condition holds, while timers are those of the test. */
async function eventually(condition: () => boolean): Promise<void> {
    const limit = AbortSignal.timeout(PATIENCE_MS);
    while (!condition()) {
        assert.ok(!limit.aborted, String(condition));
        await new Promise((resolve) => setImmediate(resolve));
    }
}

/** Time that passes at once. */
function virtualTime(t: TestContext): (ms: number) => void {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    let nowMs = performance.now();
    for (const clock of [performance, Date]) t.mock.method(clock, "now", () => nowMs);
    t.mock.method(Math, "random", () => 0);
    return (ms) => {
        nowMs += ms;
        t.mock.timers.tick(ms);
    };
}

test("a device goes to another gateway when its own does not respond any more", async (t) => {
    const other = await FrameServer.start();
    t.after(() => other.stop());
    const pass = virtualTime(t);
    client = connect([server.target, other.target], { webSocket: fromPackage });
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    server.answer = () => {};
    other.version = server.version;
    device.move({ lon: 14.52, lat: 35.5 });
    pass(4000);
    assert.equal(subscription.state, "offline and stale");
    pass(71_000);
    await eventually(() => /^UnavailableError: .*no response/u.test(String(device.offlineError)));
    await eventually(() => {
        pass(0);
        return subscription.state === "exact";
    });
    assert.deepEqual([server.handshakes.length, other.handshakes.length], [1, 1]);
});

test("a handshake without a response ends, and the next gateway takes its place", async (t) => {
    const hung = createServer();
    const accepted: Socket[] = [];
    hung.on("connection", (socket) => accepted.push(socket));
    hung.listen(0, "127.0.0.1");
    await once(hung, "listening");
    t.after(() => {
        for (const socket of accepted) socket.destroy();
        hung.close();
    });
    const gone = `ws://127.0.0.1:${(hung.address() as AddressInfo).port}`;
    const signal = AbortSignal.timeout(PATIENCE_MS);
    const pass = virtualTime(t);
    client = connect(gone, { webSocket: fromPackage });
    const refused = assert.rejects(client.attach("phone", { ...HERE, signal }), {
        name: "UnavailableError",
        message: /no response before it was open/u,
    });
    await eventually(() => accepted.length === 1);
    pass(4000);
    pass(15_000);
    await refused;
    client = connect([gone, server.target], { webSocket: fromPackage });
    const attached = client.attach("phone", { ...HERE, signal });
    await eventually(() => accepted.length === 2);
    pass(4000);
    pass(15_000);
    await eventually(() => {
        pass(0);
        return server.handshakes.length === 1;
    });
    await attached;
});

test("a search leaves no subscription", async () => {
    const device = await client.attach("phone", HERE);
    const matches = await device.search(TEA);
    assert.deepEqual(
        matches.map((match) => match.object.id),
        [7n],
    );
    assert.deepEqual(device.subscriptions, []);
});

test("a refused subscription is an error, and the device goes on", async () => {
    const device = await client.attach("phone", HERE);
    server.answer = (one, request) => {
        if (request.command.case !== "subscribe") return answerAll(one, request);
        const error = {
            reason: ErrorReason.INVALID_FIELD,
            field: "spec.top_k.k",
            value: "9000",
            limit: "1 to 100",
        };
        one.send({ case: "rejection", value: { command: 2, number: 1n, error } });
        return undefined;
    };
    await assert.rejects(device.subscribe(TEA), { message: "spec.top_k.k is 9000, must be 1 to 100" });
    await assert.rejects(device.subscribe({ ...TEA, k: 0 }), { field: "spec.topK.k" });
    server.answer = answerAll;
    device.move(HERE);
});

test("signals end what waits", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    const stop = new AbortController();
    const changes = subscription.changes({ signal: stop.signal });
    await next(changes);
    const waiting = changes.next();
    stop.abort(new Error("enough"));
    await assert.rejects(waiting, /enough/u);
    server.answer = () => {};
    const never = device.subscribe(TEA, { name: "other", signal: AbortSignal.abort(new Error("no")) });
    await assert.rejects(never, /no/u);
});

test("a signal ends a reader for whom changes are waiting", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    const stop = new AbortController();
    const { signal } = stop;
    const changes = subscription.changes({ signal });
    await next(changes);
    server.delta([3n]);
    await client.sync();
    stop.abort(new Error("enough"));
    await assert.rejects(changes.next(), /enough/u);
    await assert.rejects(subscription.states({ signal }).next(), /enough/u);
    await assert.rejects(subscription.exactResults({ signal }), /enough/u);
    await assert.rejects(device.search(TEA, { signal }), /enough/u);
    await assert.rejects(device.subscribe(TEA, { signal }), /enough/u);
    await assert.rejects(client.attach("tablet", { ...HERE, signal }), /enough/u);
    assert.equal(device.subscriptions.length, 1, "nothing has started");
});

test("a signal without a reason, as on React Native, gives an AbortError", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    const stop = new AbortController();
    Object.defineProperties(stop.signal, { reason: {}, throwIfAborted: {} });
    const changes = subscription.changes(stop);
    await next(changes);
    const waiting = changes.next();
    stop.abort();
    await assert.rejects(waiting, { name: "AbortError" });
    await assert.rejects(client.retract({ keys: ["a"] }, stop), { name: "AbortError" });
});

test("an exact result waits eight seconds for a server that is away", async (t) => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    await server.stop();
    await until(subscription, "offline");
    t.mock.timers.enable({ apis: ["setTimeout"] });
    const result = subscription.exactResults();
    await new Promise(setImmediate);
    t.mock.timers.tick(8000);
    await assert.rejects(result, UnavailableError);
    t.mock.timers.reset();
    server = await FrameServer.start();
});

test("ids and keys that are none are refused before a retraction is sent", async () => {
    for (const [objects, field] of [
        [{ ids: [17] }, "ids[0]"],
        [{ ids: [1n, 0n] }, "ids[1]"],
        [{ ids: [2n ** 63n] }, "ids[0]"],
        [{ ids: 17n }, "ids"],
        [{ keys: "bar-7" }, "keys"],
        [{ keys: ["bar-7", ""] }, "keys[1]"],
        [{ keys: [7] }, "keys[0]"],
        [{}, "objects"],
    ] as const) {
        await assert.rejects(client.retract(objects as Retraction), { name: "RefusedError", field });
    }
});

test("objects whose content is of another type are refused before they are sent", async () => {
    for (const [content, field] of [
        [{ keywords: "tea" }, "objects[0].keywords"],
        [{ payload: "20 % off" }, "objects[0].payload"],
        [{ payload: "" }, "objects[0].payload"],
        [{ payload: [256, -1] }, "objects[0].payload"],
        [{ payload: new ArrayBuffer(2) }, "objects[0].payload"],
        [{ payload: new Uint16Array([256]) }, "objects[0].payload"],
        [{ key: 7 }, "objects[0].key"],
        [{ key: "bar\n7" }, "objects[0].key"],
        [{ key: "x".repeat(129) }, "objects[0].key"],
    ] as const) {
        const object = { ...HERE, keywords: ["tea"], ttlMs: 1000, ...content } as unknown as NewObject;
        await assert.rejects(client.publish([object]), { name: "RefusedError", field });
    }
});

test("a network that has changed gets another connection at once", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    client.networkChanged();
    await until(subscription, "offline");
    await until(subscription, "exact");
    assert.equal(server.handshakes.length, 2);
});

/** Return a function that lets the device sleep: of its clocks only that of the wall goes on. */
function sleeper(t: TestContext): (ms: number) => void {
    const wallMs = Date.now() - performance.now();
    let sleptMs = 0;
    t.mock.method(Date, "now", () => wallMs + performance.now() + sleptMs);
    return (ms) => {
        sleptMs += ms;
    };
}

test("a result is not exact after a sleep until the device knows the time again", async (t) => {
    const sleep = sleeper(t);
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    const point = { xM: 0, yM: 0 };
    const expiryMs = BigInt(server.nowMs + 60_000);
    server.version += 1n;
    server.send({
        case: "delta",
        value: {
            version: server.version,
            subscriptionId: subscription.id,
            anchor: point,
            bound: { case: "reach", value: { lengthM: 1000 } },
            add: [{ object: { id: 3n, position: HERE, point, expiryMs } }],
            timeMs: BigInt(server.nowMs),
        },
    });
    await client.sync();
    assert.deepEqual([subscription.state, ids(subscription)], ["exact", [3n]]);
    sleep(61_000);
    server.nowMs += 61_000;
    assert.equal(subscription.state, "catching up");
    const found = await subscription.exactResults();
    assert.deepEqual([found.map(({ object }) => object.id), subscription.state], [[7n], "exact"]);
    await client.sync();
    assert.equal(server.handshakes.length, 2, "a sleep is noticed once");
    sleep(2000);
    device.move(HERE);
    await eventually(() => server.handshakes.length === 3);
    await eventually(() => subscription.state === "exact");
    await server.stop();
    await until(subscription, "offline");
    sleep(2000);
    assert.equal(subscription.state, "offline and stale");
    server = await FrameServer.start();
});

test("a welcome from before a sleep does not hide it", async (t) => {
    const sleep = sleeper(t);
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    server.answer = (one, request) => {
        if (one.handshakes.length === 2) sleep(5000);
        answerAll(one, request);
    };
    client.networkChanged();
    await until(subscription, "offline");
    await subscription.exactResults();
    assert.equal(server.handshakes.length, 3);
});

test("a wall clock that is corrected costs a connection, and in virtual time nothing", async (t) => {
    const sleep = sleeper(t);
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    sleep(-3_600_000);
    assert.equal(subscription.state, "exact");
    sleep(500);
    assert.equal(subscription.state, "exact");
    sleep(3_600_000);
    assert.equal(subscription.state, "catching up");
    await subscription.exactResults();
    assert.deepEqual(ids(subscription), [7n]);
    assert.equal(server.handshakes.length, 2);
    client.observeTime(server.nowMs + 1);
    sleep(3_600_000);
    assert.equal(subscription.state, "exact");
});

test("the age of a fix includes sleeps", async (t) => {
    const sleep = sleeper(t);
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    const beforeMs = device.nextFixIn(1);
    assert.ok(beforeMs > 400_000);
    sleep(100_000);
    assert.equal(device.nextFixIn(1), 0);
    await subscription.exactResults();
    const afterMs = device.nextFixIn(1);
    assert.ok(afterMs > 0 && afterMs <= beforeMs - 100_000, String(afterMs));
    device.move(HERE);
    assert.ok(device.nextFixIn(1) > afterMs);
});

test("a network that changes while a device attaches delays it, and no more", async () => {
    let changes = 3;
    server.onConnect = () => {
        if (changes > 0) client.networkChanged();
        changes -= 1;
    };
    await client.attach("phone", HERE);
    assert.equal(server.handshakes.length, 4);
});

test("closing says goodbye, and ends everything", async () => {
    const device = await client.attach("phone", HERE);
    const subscription = await device.subscribe(TEA);
    const rest = (async () => {
        for await (const change of subscription.changes()) assert.equal(change.kind, "entered");
    })();
    await client.close();
    await rest;
    assert.ok(subscription.error instanceof ClosedError);
    assert.throws(() => device.geofence(), ClosedError);
    assert.throws(() => client.networkChanged(), ClosedError);
    await assert.rejects(client.attach("phone", HERE), ClosedError);
});

test("a geofence has the radius of silence on the ground", async () => {
    const device = await client.attach("phone", HERE);
    await device.subscribe(TEA);
    const { lon, lat, radiusM, untilMs } = device.geofence();
    assert.deepEqual([lon, lat, untilMs], [14.5, 35.5, 9_007_199_254_740_991]);
    assert.ok(radiusM > 490 && radiusM < 500, String(radiusM));
});
