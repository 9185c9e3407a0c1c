/**
 * WebSocket to a gateway: one binary frame is one message of `Attach`.
 *
 * The constructor is that of the platform by default (browsers, React Native, Node.js 22 and later). On
 * Node.js 20 it is the one of the package `ws`.
 */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { UnavailableError, invalid } from "../core/errors.js";
import type { Call } from "./calls.js";
import { GATEWAY_HINT, reasonOf } from "./connection_hints.js";
import { httpCall } from "./http_calls.js";
import { isLoopback } from "./transport.js";
import type { Stream, StreamEvents, Transport } from "./transport.js";

const SUBPROTOCOL = "nearcast.v1";
const PATH = "/v1/attach";
const NORMAL_CLOSURE = 1000;
const ABNORMAL_CLOSURE = 1006;
/** The characters that a subprotocol may have. */
const SUBPROTOCOL_CHARACTERS = /^[\w!#$%&'*+.^`|~-]+$/u;

const LIMIT = 'the address of a gateway, such as "wss://near.example"';

/** The part of a WebSocket that is used. */
export interface WebSocketLike {
    binaryType: string;
    send(data: string | Uint8Array<ArrayBuffer>): void;
    close(code?: number): void;
    addEventListener(type: "open", listener: () => void): void;
    addEventListener(type: "error", listener: (event: object) => void): void;
    addEventListener(type: "close", listener: (event: { readonly code: number }) => void): void;
    addEventListener(type: "message", listener: (event: { readonly data: unknown }) => void): void;
}

/** The constructor of a WebSocket. */
export type WebSocketConstructor = new (url: string, protocols: string[]) => WebSocketLike;

/**
 * Connects to a gateway, such as `wss://near.example`, or to one of several.
 *
 * The first one is chosen at random. When a connection to it cannot be opened, breaks or has no response,
 * the next one of the list takes its place.
 */
export class WebSocketTransport implements Transport {
    readonly isConfidential: boolean;
    readonly gatewayCount: number;
    /** The addresses; the first one is in use. */
    readonly #urls: string[];
    readonly #socket: WebSocketConstructor;

    constructor(
        target: string | readonly string[],
        constructor: WebSocketConstructor | undefined = platformWebSocket(),
    ) {
        const urls = (typeof target === "string" ? [target] : target).map(parsedUrl);
        if (urls.length === 0) throw invalid("target", target, LIMIT);
        if (constructor === undefined) {
            throw invalid(
                "webSocket",
                undefined,
                "given on this platform: the WebSocket of the package ws",
            );
        }
        this.isConfidential = urls.every((url) => url.protocol === "wss:" || isLoopback(url.hostname));
        this.gatewayCount = urls.length;
        const first = Math.floor(Math.random() * urls.length);
        this.#urls = [...urls.slice(first), ...urls.slice(0, first)].map((url) => url.href);
        this.#socket = constructor;
    }

    get #url(): string {
        return this.#urls[0] ?? "";
    }

    /** Use the next gateway in place of one that cannot be reached. */
    #leave(url: string): void {
        if (url === this.#url) this.#urls.push(...this.#urls.splice(0, 1));
    }

    open(token: string, events: StreamEvents): Stream {
        const isSubprotocol = SUBPROTOCOL_CHARACTERS.test(token);
        const protocols = isSubprotocol ? [SUBPROTOCOL, `bearer.${token}`] : [SUBPROTOCOL];
        const url = this.#url;
        const socket = new this.#socket(url, protocols);
        return new WebSocketStream(socket, isSubprotocol ? "" : token, events, () => this.#leave(url));
    }

    /**
     * Make a call over HTTP, at the same address: below the path before `/v1/attach`.
     *
     * It is not repeated if the gateway cannot be reached, but the next call goes to the next gateway.
     */
    async call<Request extends DescMessage, Response extends DescMessage>(
        call: Call<Request, Response>,
        request: MessageShape<Request>,
        token: string,
        signal?: AbortSignal,
    ): Promise<MessageShape<Response>> {
        const url = this.#url;
        const { origin, pathname } = new URL(url);
        const prefix = pathname.endsWith(PATH) ? pathname.slice(0, -PATH.length) : "";
        const base = origin.replace(/^ws/u, "http") + prefix;
        try {
            return await httpCall(base, call, request, token, signal);
        } catch (error) {
            if (error instanceof UnavailableError) this.#leave(url);
            throw error;
        }
    }

    renew(): void {} // each stream has a connection of its own

    close(): void {}
}

class WebSocketStream implements Stream {
    #isOpen = false;
    #isClosed = false;
    /** What the platform reports on the failure of this connection: nothing in browsers. */
    #failure = "";

    constructor(
        readonly socket: WebSocketLike,
        token: string,
        readonly events: StreamEvents,
        /** Called if the stream fails. */
        readonly leave: () => void,
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
        // A close follows, which has the code.
        socket.addEventListener("error", (event) => {
            const { error = event } = event as { readonly error?: unknown };
            this.#failure = reasonOf(error);
        });
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

    abandon(): void {
        this.socket.close(NORMAL_CLOSURE);
        this.#closed(ABNORMAL_CLOSURE, "no response");
    }

    #closed(code: number, reason = `closed with code ${code}`): void {
        if (this.#isClosed) return;
        this.#isClosed = true;
        if (code !== NORMAL_CLOSURE) this.leave();
        const failure = this.#failure && ` (${this.#failure})`;
        const hint = this.#isOpen ? failure : ` before it was open${failure}; ${GATEWAY_HINT}`;
        this.events.onClose(new UnavailableError(`the server cannot be reached: ${reason}${hint}`));
    }
}

function platformWebSocket(): WebSocketConstructor | undefined {
    return (globalThis as { WebSocket?: WebSocketConstructor }).WebSocket;
}

function parsedUrl(target: string): URL {
    let url: URL;
    try {
        url = new URL(target);
    } catch {
        throw invalid("target", target, LIMIT);
    }
    const isAddress =
        (url.protocol === "ws:" || url.protocol === "wss:") && url.search === "" && url.hash === "";
    if (!isAddress || url.username !== "" || url.password !== "") throw invalid("target", target, LIMIT);
    if (url.pathname === "/") url.pathname = PATH;
    return url;
}
