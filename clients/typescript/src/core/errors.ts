/** Errors that the SDK throws. */

import { ErrorReason } from "../generated/nearcast/v1/errors_pb.js";
import type { Error as WireError } from "../generated/nearcast/v1/errors_pb.js";

/** Kind of a refusal: the name of a reason of the protocol, such as `"INVALID_FIELD"`. */
export type Reason = keyof typeof ErrorReason;

const SHOWN = 200;

/** Base class of all errors of the SDK. */
export class NearcastError extends Error {
    override name = "NearcastError";
}

/** The fields of a refusal. */
export interface Refusal {
    readonly reason: Reason;
    /** Path of the wrong field, such as `"spec.topK.k"`. */
    readonly field: string;
    /** Value of the field, shortened. */
    readonly value: string;
    /** Description of the allowed values. */
    readonly limit: string;
    /** Sentence for people; the default is made of field, value and limit. */
    readonly message?: string;
    /** Time to wait before a retry of the same request, in milliseconds; 0 if waiting does not help. */
    readonly retryAfterMs?: number;
}

/** The SDK or the server refused a request; the request changed nothing. */
export class RefusedError extends NearcastError implements Refusal {
    override name = "RefusedError";
    readonly reason: Reason;
    readonly field: string;
    readonly value: string;
    readonly limit: string;
    readonly retryAfterMs: number;

    constructor(refusal: Refusal) {
        super(refusal.message || `${refusal.field} is ${refusal.value}, must be ${refusal.limit}`);
        this.reason = refusal.reason;
        this.field = refusal.field;
        this.value = refusal.value;
        this.limit = refusal.limit;
        this.retryAfterMs = refusal.retryAfterMs ?? 0;
    }

    /** Convert a refusal from the wire. A reason of a newer server becomes UNSPECIFIED. */
    static fromWire(error: WireError | undefined): RefusedError {
        const { field, value, limit, message, retryAfterMs } = error ?? NO_ERROR;
        const reason = (ErrorReason[error?.reason ?? 0] ?? "UNSPECIFIED") as Reason;
        return new RefusedError({
            reason,
            field,
            value,
            limit,
            message,
            retryAfterMs: Number(retryAfterMs),
        });
    }
}

const NO_ERROR = {
    field: "",
    value: "",
    limit: "",
    message: "the server gave no reason",
    retryAfterMs: 0n,
};

/** The server cannot be reached, or the connection broke before the response. */
export class UnavailableError extends NearcastError {
    override name = "UnavailableError";
}

/** The client, device or subscription has been closed. */
export class ClosedError extends NearcastError {
    override name = "ClosedError";
}

/** The stream has lost something: the device has to resume on another one. */
export class StreamError extends NearcastError {
    override name = "StreamError";
}

/** Return a local refusal of a field, before anything is sent. */
export function invalid(field: string, value: unknown, limit: string): RefusedError {
    return new RefusedError({ reason: "INVALID_FIELD", field, value: shown(value), limit });
}

/** Return the error that ends a device after the deletion of its data. */
export function forgotten(): RefusedError {
    const limit = "attached again, as a new one";
    return new RefusedError({ reason: "FORGOTTEN", field: "device", value: "forgotten", limit });
}

function shown(value: unknown): string {
    const text = typeof value === "string" ? JSON.stringify(value) : describe(value);
    return text.length <= SHOWN ? text : `${text.slice(0, SHOWN)}…`;
}

function describe(value: unknown): string {
    if (typeof value !== "object" || value === null) return String(value);
    try {
        return JSON.stringify(value, (_, one: unknown) => (typeof one === "bigint" ? String(one) : one));
    } catch {
        return Object.prototype.toString.call(value);
    }
}
