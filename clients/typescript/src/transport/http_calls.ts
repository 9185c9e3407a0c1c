/** Calls to a gateway: HTTP with the JSON of protobuf. Refusals are problem documents (RFC 9457). */

import { fromJson, toJsonString } from "@bufbuild/protobuf";
import type { DescMessage, JsonValue, MessageShape } from "@bufbuild/protobuf";
import { NearcastError, RefusedError, UnavailableError } from "../core/errors.js";
import type { Reason } from "../core/errors.js";
import { throwIfAborted } from "../core/waiting.js";
import type { Call } from "./calls.js";
import { GATEWAY_HINT, reasonOf } from "./connection_hints.js";

/** Without a reason, the statuses of a gateway that stops or cannot reach its server, or of a proxy. */
const UNREACHABLE = [502, 503, 504];

interface Problem {
    readonly detail?: string;
    readonly reason?: string;
    readonly metadata?: { readonly field?: string; readonly value?: string; readonly limit?: string };
    readonly retry_after_ms?: number;
}

/** Make a call with `fetch`; `base` is the address of the gateway, such as `https://near.example`. */
export async function httpCall<Request extends DescMessage, Response extends DescMessage>(
    base: string,
    call: Call<Request, Response>,
    request: MessageShape<Request>,
    token: string,
    signal?: AbortSignal,
): Promise<MessageShape<Response>> {
    const response = await fetched(`${base}/v1/${call.name}`, {
        method: "POST",
        headers: {
            "Content-Type": "application/json",
            ...(token !== "" && { Authorization: `Bearer ${token}` }),
        },
        body: toJsonString(call.request, request),
        ...(signal && { signal }),
    });
    const content = await read(response, signal);
    if (!response.ok) throw failureOf(response.status, content as Problem | null);
    try {
        return fromJson(call.response, content, { ignoreUnknownFields: true });
    } catch (error) {
        throw new NearcastError(`the response is not one of a gateway: ${String(error)}`);
    }
}

async function fetched(address: string, settings: RequestInit): Promise<Response> {
    try {
        return await fetch(address, settings);
    } catch (error) {
        throwIfAborted(settings.signal ?? undefined);
        const reason = reasonOf(error) || String(error);
        throw new UnavailableError(`the gateway cannot be reached: ${reason}; ${GATEWAY_HINT}`);
    }
}

async function read(response: Response, signal: AbortSignal | undefined): Promise<JsonValue> {
    try {
        return (await response.json()) as JsonValue;
    } catch {
        throwIfAborted(signal);
        if (response.ok) throw new UnavailableError("the connection broke before the response");
        return null;
    }
}

/** Convert a response with an error; its content is that of a proxy if it is no problem document. */
function failureOf(status: number, problem: Problem | null): Error {
    const { detail, reason, metadata } = problem ?? {};
    const message = detail ?? `the gateway responded with status ${status}`;
    if (reason === undefined) {
        return UNREACHABLE.includes(status) ? new UnavailableError(message) : new NearcastError(message);
    }
    const { field = "", value = "", limit = "" } = metadata ?? {};
    return new RefusedError({
        reason: reason as Reason,
        field,
        value,
        limit,
        message,
        retryAfterMs: problem?.retry_after_ms ?? 0,
    });
}
