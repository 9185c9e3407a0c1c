/** Devices over gRPC, on a real server. It needs the Python environment of this repository. */

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import type { ChildProcessByStdio } from "node:child_process";
import { getEventListeners } from "node:events";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Readable, Writable } from "node:stream";
import { after, before, describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { create, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { Metadata, Server as GrpcServer, ServerCredentials, status } from "@grpc/grpc-js";
import type { ServerDuplexStream } from "@grpc/grpc-js";
import { WebSocket } from "ws";
import { ErrorReason, ErrorSchema } from "../src/generated/nearcast/v1/errors_pb.js";
import { GrpcTransport } from "../src/grpc.js";
import { ClosedError, RefusedError, UnavailableError, connect } from "../src/index.js";
import type { Change, Client, NewObject, Subscription } from "../src/index.js";
import { PUBLISH } from "../src/transport/calls.js";

const ROOT = fileURLToPath(new URL("../../../../", import.meta.url));
const PYTHON = process.env["NEARCAST_PYTHON"] ?? `${ROOT}.venv/bin/python`;
const PATIENCE_MS = 60_000;
const OBJECTS = 900;
const WORDS = ["coffee", "tea", "wifi", "garden"];

/** A server in another process. */
class Server {
    readonly #lines: AsyncIterator<string>;

    constructor(readonly process: ChildProcessByStdio<Writable, Readable, null>) {
        this.#lines = createInterface(process.stdout)[Symbol.asyncIterator]();
    }

    async read(): Promise<unknown> {
        const { value, done } = await this.#lines.next();
        assert.ok(done !== true, "the server has ended");
        return JSON.parse(value) as unknown;
    }

    async call(command: object): Promise<unknown> {
        this.process.stdin.write(`${JSON.stringify(command)}\n`);
        return this.read();
    }
}

test("a server that cannot be reached", async () => {
    const client = connect(new GrpcTransport("127.0.0.1:1"));
    await assert.rejects(client.attach("phone", { lon: 14.5, lat: 35.5 }), UnavailableError);
    await assert.rejects(client.retract({ keys: ["a"] }), UnavailableError);
    await client.close();
    const behind = connect("ws://127.0.0.1:1", { webSocket: WebSocket });
    await assert.rejects(behind.retract({ keys: ["a"] }), UnavailableError);
    await behind.close();
    await assert.rejects(behind.retract({ keys: ["a"] }), ClosedError);
});

test("a call leaves no listener at its signal, which may abort before the call starts", async () => {
    const stop = new AbortController();
    const { signal } = stop;
    const target = "127.0.0.1:1";
    const client = connect(new GrpcTransport(target));
    await assert.rejects(client.retract({ keys: ["a"] }, { signal }), UnavailableError);
    assert.equal(getEventListeners(signal, "abort").length, 0);
    await client.close();
    const token = () => {
        stop.abort(new Error("enough"));
        return "token";
    };
    const other = connect(new GrpcTransport(target), { token });
    await assert.rejects(other.retract({ keys: ["a"] }, { signal }), /enough/u);
    await other.close();
});

test("a token that cannot be sent is not shown", async () => {
    for (const secret of ["se\ncret", "se\u00e9cret"]) {
        for (const target of [new GrpcTransport("127.0.0.1:1"), "ws://127.0.0.1:1"]) {
            const client = connect(target, { token: () => secret, webSocket: WebSocket });
            for (const call of [
                client.attach("phone", { lon: 14.5, lat: 35.5 }),
                client.retract({ keys: ["a"] }),
            ]) {
                await assert.rejects(call, {
                    name: "UnavailableError",
                    message:
                        "no token is available: " +
                        "the function did not return text of printable ASCII characters on one line",
                });
            }
            await client.close();
        }
        assert.throws(() => connect("ws://127.0.0.1:1", { token: secret, webSocket: WebSocket }), {
            field: "token",
            message: "token is not shown, must be a text of printable ASCII characters on one line",
        });
    }
});

test("addresses", () => {
    for (const target of ["", "http://localhost:1", "a b"]) {
        assert.throws(() => new GrpcTransport(target), { field: "target" });
    }
    assert.throws(() => connect(new GrpcTransport("near.example"), { token: "t" }), { field: "target" });
    connect(new GrpcTransport("near.example", { tls: {} }), { token: "t" });
});

describe("a server that drains", () => {
    const error = { reason: ErrorReason.DRAINING, message: "stopping" };
    const tea = { keywords: ["tea"], lon: 14.5, lat: 35.5, ttlMs: 1000 };

    /** Publish at a server that sends `first`, and `rest` when the client has half-closed. */
    async function published(
        first: MessageInitShape<typeof PUBLISH.response>,
        rest: MessageInitShape<typeof PUBLISH.response>[],
    ): Promise<bigint[]> {
        const server = new GrpcServer();
        const bytes = (message: Uint8Array) => Buffer.from(message);
        const method = {
            path: PUBLISH.method,
            requestStream: true,
            responseStream: true,
            requestSerialize: bytes,
            requestDeserialize: bytes,
            responseSerialize: bytes,
            responseDeserialize: bytes,
        };
        const handle = (call: ServerDuplexStream<Uint8Array, Uint8Array>) => {
            const send = (message: MessageInitShape<typeof PUBLISH.response>) =>
                call.write(toBinary(PUBLISH.response, create(PUBLISH.response, message)));
            call.on("data", () => send(first));
            call.on("end", () => {
                rest.forEach(send);
                const metadata = new Metadata();
                metadata.set("nearcast-error-bin", bytes(toBinary(ErrorSchema, create(ErrorSchema, error))));
                call.emit("error", { code: status.UNAVAILABLE, details: "stopping", metadata });
            });
        };
        server.addService({ Publish: method }, { Publish: handle });
        const port = await new Promise<number>((resolve, reject) => {
            server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (failure, bound) =>
                failure === null ? resolve(bound) : reject(failure),
            );
        });
        const client = connect(new GrpcTransport(`127.0.0.1:${port}`));
        try {
            return await client.publish([tea]);
        } finally {
            await client.close();
            server.forceShutdown();
        }
    }

    test("a publication that it has admitted gets its response", async () => {
        const admitted = { goAway: { error, admittedCount: 1n } };
        assert.deepEqual(await published(admitted, [{ sequence: 1n, ids: [7n] }]), [7n]);
        const refusal = { reason: ErrorReason.OUT_OF_AREA, field: "objects[0].position" };
        await assert.rejects(published(admitted, [{ error: refusal }]), { reason: "OUT_OF_AREA" });
    });

    test("an admitted publication without a response has an unknown outcome", async () => {
        await assert.rejects(
            published({ goAway: { error, admittedCount: 1n } }, []),
            (failure) => failure instanceof UnavailableError,
        );
    });

    test("a publication that it has not admitted is refused", async () => {
        await assert.rejects(published({ goAway: { error } }, []), {
            name: "RefusedError",
            reason: "DRAINING",
        });
    });
});

const skip = existsSync(PYTHON) ? false : `no Python environment: ${PYTHON} does not exist`;

describe("on a real server", { skip }, () => {
    let server: Server;
    let client: Client;
    /** A client of the gateway. */
    let behind: Client;

    before(async () => {
        const script = fileURLToPath(new URL("../../test/serving.py", import.meta.url));
        const env = { ...process.env, PYTHONPATH: ROOT };
        server = new Server(
            spawn(PYTHON, [script], { cwd: ROOT, env, stdio: ["pipe", "pipe", "inherit"] }),
        );
        const { port, gateway } = (await server.read()) as { port: number; gateway: number };
        client = connect(new GrpcTransport(`localhost:${port}`));
        behind = connect(`ws://localhost:${gateway}`, { webSocket: WebSocket });
    });

    after(async () => {
        await client?.close();
        await behind?.close();
        server?.process.stdin.end();
        server?.process.kill();
    });

    test("results are those of a search, to the last bit, wherever the device moves", async () => {
        const chance = randoms(7);
        const object = () => ({
            keywords: WORDS.filter(() => chance() < 0.5).concat("shop"),
            ttl_s: 600,
            lon: 14.5 + (chance() - 0.5) * 0.5,
            lat: 35.5 + (chance() - 0.5) * 0.5,
        });
        await server.call({ publish: Array.from({ length: OBJECTS }, object) });
        let [lon, lat] = [14.5, 35.5];
        const device = await client.attach("walker", { lon, lat });
        const subscription = await device.subscribe({ kind: "topK", keywords: ["coffee", "shop"], k: 5 });
        for (let step = 0; step < 40; step += 1) {
            lon += (chance() - 0.5) * 0.05;
            lat += (chance() - 0.5) * 0.05;
            device.move({ lon, lat });
            if (step % 4 === 0) await server.call({ publish: [object()] });
            const expected = await server.call({
                search: { keywords: ["coffee", "shop"], k: 5, lon, lat },
            });
            await settled(subscription, expected);
        }
        assert.ok(
            device.counters.reports < device.counters.moves,
            "the device is silent while it may be",
        );
        assert.ok(device.counters.reports > 0);
        await device.detach();
    });

    for (const way of ["gRPC", "HTTP"]) {
        const publisher = () => (way === "gRPC" ? client : behind);

        test(`publish, search and retract over ${way}`, async () => {
            const place = { lon: 14.7, lat: 35.7 };
            const area = {
                kind: "polygon",
                outer: [
                    { lon: 14.71, lat: 35.7 },
                    { lon: 14.72, lat: 35.7 },
                    { lon: 14.71, lat: 35.71 },
                    { lon: 14.71, lat: 35.7 },
                ],
            } as const;
            const payload = new TextEncoder().encode("20 % off");
            const objects = [
                { keywords: [`cake-${way}`], ...place, ttlMs: 60_000, payload, key: `${way}-1` },
                { keywords: [`cake-${way}`], area, ttlMs: 60_000, key: `${way}-2` },
            ];
            const ids = await publisher().publish(objects);
            assert.deepEqual(await publisher().publish(objects), ids, "keys make a repeat safe");
            const spec = { kind: "topK", keywords: [`cake-${way}`], k: 5 } as const;
            const found = await publisher().search(spec, place);
            assert.deepEqual(
                found.map(({ object }) => object.id),
                ids,
            );
            const [first, second] = found;
            assert.deepEqual(first?.object.payload, payload);
            assert.deepEqual([first?.score, first?.distanceM], [0, 0]);
            assert.deepEqual(second?.object.area, { ...area, outer: area.outer.slice(0, -1) });
            assert.deepEqual(await client.search(spec, place), found, "the same over the other way");
            await publisher().retract({ ids: ids.slice(0, 1), keys: [`${way}-2`] });
            assert.deepEqual(await publisher().search(spec, place), []);
        });

        test(`a device is forgotten over ${way}`, async () => {
            const place = { lon: 14.3, lat: 35.3 };
            const spec = { kind: "topK", keywords: ["tea"] } as const;
            const device = await publisher().attach(`gone-${way}`, place);
            const subscription = await device.subscribe(spec, { name: "tea" });
            assert.equal(await publisher().forgetDevice(device.id), 1);
            for (const { error } of [device, subscription]) {
                assert.ok(error instanceof RefusedError);
                assert.equal(error.reason, "FORGOTTEN");
            }
            const next = await publisher().attach(device.id, place);
            assert.deepEqual(next.subscriptions, []);
            await next.detach();
            assert.equal(await publisher().forgetDevice(device.id), 0, "nothing is left");
        });

        test(`refusals over ${way}`, async () => {
            const outside = { keywords: ["tea"], lon: 1, lat: 1, ttlMs: 1000 };
            await assert.rejects(publisher().publish([outside]), {
                name: "RefusedError",
                reason: "OUT_OF_AREA",
                field: "objects[0].position",
            });
            await assert.rejects(publisher().retract({ ids: [123_456_789n] }), {
                reason: "UNKNOWN_OBJECT",
            });
            await assert.rejects(publisher().search({ kind: "topK", keywords: [] }, { lon: 14, lat: 35 }), {
                reason: "INVALID_FIELD",
            });
            await assert.rejects(publisher().publish([{ keywords: ["tea"], ttlMs: 1 }]), {
                field: "objects[0]",
            });
            await assert.rejects(publisher().publish([]), { field: "objects" });
            const signal = AbortSignal.abort(new Error("enough"));
            const place = { lon: 14.5, lat: 35.5 };
            await assert.rejects(
                publisher().search({ kind: "topK", keywords: ["tea"] }, place, { signal }),
                /enough/u,
            );
        });
    }

    test("a first result of more than 4 MiB arrives", async () => {
        const place = { lon: 14.9, lat: 35.9 };
        const payload = new Uint8Array(16_384);
        const heavy = { keywords: ["heavy"], ...place, ttlMs: 600_000, payload };
        for (let i = 0; i < 3; i += 1) await client.publish(Array<NewObject>(100).fill(heavy));
        const device = await client.attach("carrier", place);
        const range = { kind: "circle", radiusM: 500 } as const;
        const spec = { kind: "boolean", expression: "heavy", range, moving: true } as const;
        const signal = AbortSignal.timeout(PATIENCE_MS);
        const subscription = await device.subscribe(spec, { signal });
        assert.equal(subscription.results().length, 300);
        assert.ok(device.counters.bytesReceived > 4 * 1024 * 1024);
        await device.detach();
    });

    test("changes arrive, and ids are bigints", async () => {
        const device = await client.attach("reader", { lon: 14.2, lat: 35.2 });
        const range = { kind: "circle", radiusM: 500 } as const;
        const spec = {
            kind: "boolean",
            expression: 'tea AND NOT "live music"',
            range,
            moving: true,
        } as const;
        const subscription = await device.subscribe(spec, { name: "tea" });
        const changes = subscription.changes();
        const first = changes.next();
        const object = { keywords: ["Tea"], lon: 14.2, lat: 35.2, ttl_s: 600 };
        const [id] = (await server.call({ publish: [object] })) as string[];
        const { value } = await first;
        const change = value as Change;
        assert.deepEqual(
            [change.kind, change.reason, String(change.object.id)],
            ["entered", "published", id],
        );
        assert.equal(typeof change.object.id, "bigint");
        await changes.return();
        client.networkChanged();
        for await (const state of subscription.states()) if (state === "offline") break;
        for await (const state of subscription.states()) if (state === "exact") break;
        assert.equal(await device.subscribe(spec, { name: "tea" }), subscription);
        await subscription.unsubscribe();
        assert.equal(subscription.state, "ended");
        await device.detach();
    });

    /** Wait until the result of a subscription is the expected one; its deltas may be on their way. */
    async function settled(subscription: Subscription, expected: unknown): Promise<void> {
        const ranked = () =>
            subscription.results().map(({ object, score }) => [String(object.id), score]);
        const wanted = (expected as [string, number, number][]).map(([id, score]) => [id, score]);
        const limit = AbortSignal.timeout(PATIENCE_MS);
        while (subscription.state !== "exact" || !isDeepStrictEqual(ranked(), wanted)) {
            assert.ok(!limit.aborted, `${JSON.stringify(ranked())} is not ${JSON.stringify(wanted)}`);
            await new Promise((resolve) => setImmediate(resolve));
        }
        subscription.results().forEach(({ distanceM }, rank) => {
            const [, , exactM] = (expected as [string, number, number][])[rank] as [
                string,
                number,
                number,
            ];
            assert.ok(Math.abs(distanceM - exactM) <= 1e-9 * exactM);
        });
    }
});

/** Return a generator of numbers from [0, 1), the same ones each time. */
function randoms(seed: number): () => number {
    let state = seed;
    return () => {
        state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
        return state / 2 ** 32;
    };
}
