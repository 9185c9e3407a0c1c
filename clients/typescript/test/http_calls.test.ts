/** Calls to a gateway, or to a proxy in its place. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { WebSocket } from "ws";
import { NearcastError, connect } from "../src/index.js";
import type { Client } from "../src/index.js";

async function client(t: TestContext, listener: RequestListener, path = ""): Promise<Client> {
    const server = createServer(listener).listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
        server.closeAllConnections();
        server.close();
    });
    const { port } = server.address() as AddressInfo;
    return connect(`ws://127.0.0.1:${port}${path}`, { webSocket: WebSocket });
}

test("responses that are none of a gateway are errors of the SDK", async (t) => {
    const contents = ["null", "[]", '{"metadata": null, "reason": "INTERNAL", "detail": "broken"}'];
    for (const [status, names] of [
        [500, ["NearcastError", "NearcastError", "RefusedError"]],
        [200, ["NearcastError", "NearcastError", undefined]],
    ] as const) {
        for (const [i, name] of names.entries()) {
            const gateway = await client(t, (_, response) => {
                response.writeHead(status).end(contents[i]);
            });
            if (name === undefined) await gateway.retract({ keys: ["a"] });
            else {
                await assert.rejects(gateway.retract({ keys: ["a"] }), (error) => {
                    return error instanceof NearcastError && error.name === name;
                });
            }
        }
    }
});

test("a gateway that stops, or a proxy without one, cannot be reached", async (t) => {
    const problem = '{"type": "about:blank", "status": 503, "detail": "the gateway is stopping"}';
    const draining = '{"reason": "DRAINING", "detail": "the server is stopping"}';
    for (const [content, name] of [
        [problem, "UnavailableError"],
        ["<html></html>", "UnavailableError"],
        [draining, "RefusedError"],
    ] as const) {
        const gateway = await client(t, (_, response) => {
            response.writeHead(503).end(content);
        });
        await assert.rejects(gateway.retract({ keys: ["a"] }), { name });
    }
});

test("a signal that aborts during a response is the reason of the failure", async (t) => {
    const stop = new AbortController();
    const gateway = await client(t, (_, response) => {
        response.writeHead(200).write("{");
    });
    const { fetch } = globalThis;
    t.mock.method(globalThis, "fetch", async (...args: Parameters<typeof fetch>) => {
        const response = await fetch(...args);
        stop.abort(new Error("enough"));
        return response;
    });
    await assert.rejects(gateway.retract({ keys: ["a"] }, { signal: stop.signal }), /enough/u);
});

test("calls have the path of the gateway", async (t) => {
    for (const [path, expected] of [
        ["", "/v1/retract"],
        ["/v1/attach", "/v1/retract"],
        ["/near/v1/attach", "/near/v1/retract"],
        ["/stream", "/v1/retract"],
    ]) {
        const urls: (string | undefined)[] = [];
        const listener: RequestListener = ({ url }, response) => {
            urls.push(url);
            response.writeHead(200).end("{}");
        };
        await (await client(t, listener, path)).retract({ keys: ["a"] });
        assert.deepEqual(urls, [expected]);
    }
});
