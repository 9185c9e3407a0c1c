/** What errors about failed connections tell a developer. */

import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer as createHttpServer } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { createServer as createTlsServer } from "node:tls";
import { Server as GrpcServer, ServerCredentials } from "@grpc/grpc-js";
import { WebSocket } from "ws";
import { GrpcTransport } from "../src/grpc.js";
import { connect } from "../src/index.js";
import type { Transport, WebSocketConstructor } from "../src/index.js";
import { withServerHint } from "../src/transport/connection_hints.js";

const HERE = { lon: 14.5, lat: 35.5 };
const TEA = { kind: "topK", keywords: ["tea"] } as const;
const CAUSES =
    "; possible causes: no gateway at this address, an origin that its --origin does not allow, " +
    "a certificate that is not trusted, ws:// in place of wss://, or the reverse";
const TLS_FAILURE = "(ERR_SSL|EPROTO|write EPROTO)[^;]* alert [^;]*";

async function portOf(t: TestContext, server: Server): Promise<number> {
    await once(server.listen(0, "127.0.0.1"), "listening");
    t.after(() => server.close());
    return (server.address() as AddressInfo).port;
}

/** Return a port with TLS at which every handshake fails: its server has no certificate. */
function tlsPort(t: TestContext): Promise<number> {
    return portOf(t, createTlsServer());
}

async function closedPort(): Promise<number> {
    const server = createHttpServer().listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as AddressInfo;
    server.close();
    await once(server, "close");
    return port;
}

/** Return the messages of a failed attach and of a failed search. */
async function messages(
    target: string | Transport,
    webSocket: WebSocketConstructor = WebSocket,
): Promise<[string, string]> {
    const client = connect(target, { webSocket });
    const text = (call: Promise<unknown>) =>
        call.then(
            () => assert.fail("it has not failed"),
            ({ message }: Error) => message,
        );
    const attach = await text(client.attach("phone", HERE));
    const search = await text(client.search(TEA, HERE));
    await client.close();
    return [attach, search];
}

test("an origin that the gateway does not allow", async (t) => {
    const gateway = createHttpServer();
    gateway.on("upgrade", (_, socket) => socket.end("HTTP/1.1 403 Forbidden\r\n\r\n"));
    const target = `ws://127.0.0.1:${await portOf(t, gateway)}`;
    const closed = "the server cannot be reached: closed with code 1006 before it was open";
    const client = connect(target, { webSocket: WebSocket });
    await assert.rejects(client.attach("phone", HERE), {
        name: "UnavailableError",
        message: `${closed} (Unexpected server response: 403)${CAUSES}`,
    });
    // As in browsers, which give no reason.
    class Silent extends EventTarget {
        binaryType = "";
        constructor() {
            super();
            queueMicrotask(() => {
                this.dispatchEvent(new Event("error"));
                this.dispatchEvent(Object.assign(new Event("close"), { code: 1006 }));
            });
        }
        send(): void {}
        close(): void {}
    }
    const page = connect(target, { webSocket: Silent as unknown as WebSocketConstructor });
    await assert.rejects(page.attach("phone", HERE), { message: `${closed}${CAUSES}` });
});

test("TLS that fails has the reason of the platform", async (t) => {
    for (const message of await messages(`wss://127.0.0.1:${await tlsPort(t)}`)) {
        assert.match(message, new RegExp(`: (closed .* )?\\(?${TLS_FAILURE}${CAUSES}$`, "u"));
    }
});

test("a gateway with TLS at an address without", async (t) => {
    const [attach, search] = await messages(`ws://127.0.0.1:${await tlsPort(t)}`);
    assert.match(attach, /ECONNRESET.*ws:\/\/ in place of wss:\/\//u);
    assert.match(search, /^the gateway cannot be reached: \S.*ws:\/\/ in place of wss:\/\//u);
});

test("no gateway, and a reason that has its code only once", async () => {
    const port = await closedPort();
    const refused = `connect ECONNREFUSED 127.0.0.1:${port}`;
    const [attach, search] = await messages(`ws://127.0.0.1:${port}`);
    assert.ok(attach.endsWith(` before it was open (${refused})${CAUSES}`), attach);
    assert.equal(search, `the gateway cannot be reached: ${refused}${CAUSES}`);
});

test("a server with TLS, and a transport without, and the reverse", async (t) => {
    for (const message of await messages(new GrpcTransport(`127.0.0.1:${await tlsPort(t)}`))) {
        assert.match(message, /; does the server require TLS\? Set the option tls of GrpcTransport$/u);
        assert.ok(!message.includes("Resolution note"), message);
    }
    const grpc = new GrpcServer();
    const port = await new Promise<number>((resolve, reject) => {
        grpc.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
            error === null ? resolve(bound) : reject(error),
        );
    });
    t.after(() => grpc.forceShutdown());
    const plain = new GrpcTransport(`127.0.0.1:${port}`, { tls: { serverName: "localhost" } });
    for (const message of await messages(plain)) {
        assert.match(message, /\S; does the server use TLS\? If not, leave out tls$/u);
    }
});

test("no server at an address", async () => {
    const target = new GrpcTransport(`127.0.0.1:${await closedPort()}`);
    for (const message of await messages(target)) assert.match(message, /; is a server running at this/u);
});

for (const [error, hint] of [
    ["Error: self-signed certificate. Resolution note: ", "tls.rootCertificates"],
    ["Error: unable to verify the first certificate. Resolution note: ", "tls.rootCertificates"],
    [
        "Error [ERR_TLS_CERT_ALTNAME_INVALID]: Hostname/IP does not match certificate's altnames: " +
            "Host: a. is not in the cert's altnames: DNS:b. Resolution note: ",
        "tls.serverName",
    ],
    ["Name resolution failed for target dns:nohost:1", "does this machine know it?"],
] as const) {
    test(`a report of gRPC: ${error}`, () => {
        const text = withServerHint(error);
        assert.ok(text.startsWith(`${error.replace(". Resolution note: ", "")}; `), text);
        assert.ok(text.endsWith(hint), text);
    });
}

test("a report of gRPC without a likely mistake", () => {
    assert.equal(withServerHint("Connection dropped"), "Connection dropped");
});
