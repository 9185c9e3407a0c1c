/**
 * WebSocket to a gateway: one binary frame is one message of `Attach`.
 *
 * The constructor is that of the platform by default (browsers, React Native, Node.js 22 and later). On
 * Node.js 20 it is the one of the package `ws`.
 */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { UnavailableError, invalid } from "../core/errors.js";
import type { Call } from "./calls.js";
import { httpCall } from "./http_calls.js";
import { isLoopback } from "./transport.js";
import type { Stream, StreamEvents, Transport } from "./transport.js";

const SUBPROTOCOL = "nearcast.v1";
const PATH = "/v1/attach";
const NORMAL_CLOSURE = 1000;
/** The characters that a subprotocol may have. */
const SUBPROTOCOL_CHARACTERS = /^[\w!#$%&'*+.^`|~-]+$/u;

/** The part of a WebSocket that is used. */
export interface WebSocketLike {
    binaryType: string;
    send(data: string | Uint8Array<ArrayBuffer>): void;
    close(code?: number): void;
    addEventListener(type: "open" | "error", listener: () => void): void;
    addEventListener(type: "close", listener: (event: { readonly code: number }) => void): void;
    addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
}

/** The constructor of a WebSocket. */
export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike;

/** Connects to a gateway, such as `wss://near.example`. */
export class WebSocketTransport implements Transport {
    readonly isConfidential: boolean;
    readonly #url: string;
    readonly #socket: WebSocketConstructor;

    constructor(target: string, constructor: WebSocketConstructor | undefined = platformWebSocket()) {
        const url = parsedUrl(target);
        if (constructor === undefined) {
            throw invalid(
                "webSocket",
                undefined,
                "given on this platform: the WebSocket of the package ws",
            );
        }
        this.isConfidential = url.protocol === "wss:" || isLoopback(url.hostname);
        this.#url = url.href;
        this.#socket = constructor;
    }

    open(token: string, events: StreamEvents): Stream {
        const isSubprotocol = SUBPROTOCOL_CHARACTERS.test(token);
        const protocols = isSubprotocol ? [SUBPROTOCOL, `bearer.${token}`] : [SUBPROTOCOL];
        return new WebSocketStream(
            new this.#socket(this.#url, protocols),
            isSubprotocol ? "" : token,
            events,
        );
    }

    /** Make a call over HTTP, at the same address: below the path before `/v1/attach`. */
    call<Request extends DescMessage, Response extends DescMessage>(
        call: Call<Request, Response>,
        request: MessageShape<Request>,
        token: string,
        signal?: AbortSignal,
    ): Promise<MessageShape<Response>> {
        const { origin, pathname } = new URL(this.#url);
        const prefix = pathname.endsWith(PATH) ? pathname.slice(0, -PATH.length) : "";
        const base = origin.replace(/^ws/u, "http") + prefix;
        return httpCall(base, call, request, token, signal);
    }

    renew(): void {} // each stream has a connection of its own

    close(): void {}
}

class WebSocketStream implements Stream {
    #isOpen = false;
    #isClosed = false;

    constructor(
        readonly socket: WebSocketLike,
        token: string,
        readonly events: StreamEvents,
    ) {
        socket.binaryType = "arraybuffer";
        socket.addEventListener("open", () => {
            if (this.#isClosed) return;
            this.#isOpen = true;
            if (token !== "") socket.send(token);
            events.onOpen();
        });
        socket.addEventListener("message", ({ data }) => {
            if (!this.#isClosed && data instanceof ArrayBuffer) events.onMessage(new Uint8Array(data));
        });
        socket.addEventListener("error", () => {}); // a close follows, which has the code
        socket.addEventListener("close", ({ code }) => this.#closed(code));
    }

    send(message: Uint8Array<ArrayBuffer>): void {
        if (this.#isOpen && !this.#isClosed) this.socket.send(message);
    }

    end(): void {
        this.socket.close(NORMAL_CLOSURE);
    }

    cancel(): void {
        this.socket.close(NORMAL_CLOSURE);
        this.#closed(NORMAL_CLOSURE);
    }

    #closed(code: number): void {
        if (this.#isClosed) return;
        this.#isClosed = true;
        const hint = this.#isOpen ? "" : " before it was open; is a gateway at this address?";
        this.events.onClose(
            new UnavailableError(`the server cannot be reached: closed with code ${code}${hint}`),
        );
    }
}

function platformWebSocket(): WebSocketConstructor | undefined {
    return (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket;
}

function parsedUrl(target: string): URL {
    const limit = 'the address of a gateway, such as "wss://near.example"';
    let url: URL;
    try {
        url = new URL(target);
    } catch {
        throw invalid("target", target, limit);
    }
    const isAddress =
        (url.protocol === "ws:" || url.protocol === "wss:") && url.search === "" && url.hash === "";
    if (!isAddress || url.username !== "" || url.password !== "") throw invalid("target", target, limit);
    if (url.pathname === "/") url.pathname = PATH;
    return url;
}
