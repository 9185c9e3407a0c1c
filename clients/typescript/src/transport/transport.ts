/** What a device needs of a connection: streams of serialized messages of `Attach`. */

import { UnavailableError } from "../core/errors.js";
import type { Caller } from "./calls.js";

/** A token, or a function that returns a valid one, called whenever a stream starts. */
export type TokenSource = string | (() => string | Promise<string>);

/** The events of one stream, in order. `onClose` is the last one. */
export interface StreamEvents {
    /** The server has accepted the stream. */
    onOpen(): void;
    /** A serialized `AttachResponse` has arrived. */
    onMessage(message: Uint8Array): void;
    /** The stream has ended, with the reason if it is known. */
    onClose(error: Error): void;
}

/** One stream of `Attach`. */
export interface Stream {
    /** Send a serialized `AttachRequest`. It is dropped if the stream has ended. */
    send(message: Uint8Array<ArrayBuffer>): void;
    /** Send nothing more; the server ends the stream. */
    end(): void;
    /** End the stream at once. */
    cancel(): void;
    /**
     * End the stream at once: the server does not respond, so the next stream needs another connection.
     * Absent if the transport notices itself that a connection is lost.
     */
    abandon?(): void;
}

/** Opens streams to a server or a gateway. Without `call` it is for devices alone. */
export interface Transport extends Partial<Caller> {
    /** Whether others on the way to the server cannot read what is sent. */
    readonly isConfidential: boolean;
    /** Number of gateways that it tries one after the other; 1 by default. */
    readonly gatewayCount?: number;
    /** Open a stream for one device; the token is empty if there is none. */
    open(token: string, events: StreamEvents): Stream;
    /** Use another connection for the next streams: the network has changed. */
    renew(): void;
    /** Close the connection. */
    close(): void;
}

/** Description of a valid token. */
export const PRINTABLE = "text of printable ASCII characters on one line";

/** Return a token without blanks and newlines around it; undefined if it is not valid. */
export function strippedToken(token: string): string | undefined {
    const text = token.trim();
    return /^[\x20-\x7e]*$/u.test(text) ? text : undefined;
}

/**
 * Return a valid token; empty if there is none.
 *
 * Platforms repeat a token that they cannot send in their errors, so such a one is refused before.
 */
export async function currentToken(source: TokenSource): Promise<string> {
    let token: string | undefined;
    try {
        token = strippedToken(typeof source === "string" ? source : await source());
    } catch (error) {
        throw new UnavailableError(`the token function failed: ${String(error)}`);
    }
    if (token === undefined) {
        throw new UnavailableError(`no token is available: the function did not return ${PRINTABLE}`);
    }
    return token;
}

/** Return whether an address is one of this machine. */
export function isLoopback(host: string): boolean {
    return (
        host === "localhost" || host === "[::1]" || host === "::1" || /^127\.\d+\.\d+\.\d+$/u.test(host)
    );
}
