/**
 * gRPC to a server, for programs on Node.js, with the package `@grpc/grpc-js`.
 *
 *     const client = connect(new GrpcTransport("near.example:7433"), { token });
 */

import { Client as GrpcClient, Metadata, credentials, status } from "@grpc/grpc-js";
import type {
    ChannelCredentials,
    ChannelOptions,
    ClientDuplexStream,
    ServiceError,
    StatusObject,
} from "@grpc/grpc-js";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import { RefusedError, UnavailableError, invalid } from "./core/errors.js";
import { Deferred, unlessAborted } from "./core/waiting.js";
import { requireFields } from "./fields.js";
import type { Names } from "./fields.js";
import { ErrorSchema } from "./generated/nearcast/v1/errors_pb.js";
import type { Call } from "./transport/calls.js";
import { withServerHint } from "./transport/connection_hints.js";
import { isLoopback } from "./transport/transport.js";
import type { Stream, StreamEvents, Transport } from "./transport/transport.js";

const ATTACH = "/nearcast.v1.DeviceService/Attach";
const ERROR_METADATA = "nearcast-error-bin";
const PORT = "7433";
/** As in the Python SDK. That of `@grpc/grpc-js` is 4 MiB, and a first result may be larger. */
const MESSAGE_BYTES_MAX = 64 * 1024 * 1024;
/** Time to wait until the server accepts a stream, before devices send anyway. */
const ACCEPTED_MS = 5000;
/** More than a third of the server's lease: by then devices have sent their own pings. */
const KEEPALIVE_MS = 240_000;
const KEEPALIVE_TIMEOUT_MS = 10_000;
const LOST = "the connection was lost before the response";

/** How to verify the server, and how it can verify this client. */
export interface GrpcTls {
    /** Root certificates, PEM; absent for those of Node.js. */
    readonly rootCertificates?: Uint8Array;
    /** Certificate and key of this client, PEM, for servers that request a client certificate. */
    readonly certificate?: Uint8Array;
    readonly key?: Uint8Array;
    /** Name in the server's certificate, if it differs from the address. */
    readonly serverName?: string;
}

/** Settings of the connection. */
export interface GrpcOptions {
    /** How to verify the server; absent for a connection without encryption. */
    readonly tls?: GrpcTls;
    /** After this time without data from the server the connection sends a ping. */
    readonly keepaliveMs?: number;
}

const OPTIONS: Names<GrpcOptions> = { tls: true, keepaliveMs: true };
const TLS: Names<GrpcTls> = { rootCertificates: true, certificate: true, key: true, serverName: true };

/** Connects to a server by its address, such as `localhost:7433`. The default port is 7433. */
export class GrpcTransport implements Transport {
    readonly isConfidential: boolean;
    readonly #target: string;
    readonly #credentials: ChannelCredentials;
    readonly #options: ChannelOptions;
    #client: GrpcClient;

    constructor(target: string, options: GrpcOptions = {}) {
        requireFields(options, "options", OPTIONS);
        const { tls, keepaliveMs = KEEPALIVE_MS } = options;
        if (tls !== undefined) requireFields(tls, "tls", TLS);
        if (!/^([\w.-]+|\[[\da-f:.]+\])(:\d+)?$/iu.test(target)) {
            throw invalid("target", target, 'the address of a server, such as "localhost:7433"');
        }
        const host = target.replace(/:\d+$/u, "");
        this.#target = host === target ? `${target}:${PORT}` : target;
        this.isConfidential = tls !== undefined || isLoopback(host);
        this.#credentials =
            tls === undefined
                ? credentials.createInsecure()
                : credentials.createSsl(
                      buffer(tls.rootCertificates),
                      buffer(tls.key),
                      buffer(tls.certificate),
                  );
        this.#options = {
            "grpc.max_receive_message_length": MESSAGE_BYTES_MAX,
            "grpc.keepalive_time_ms": keepaliveMs,
            "grpc.keepalive_timeout_ms": KEEPALIVE_TIMEOUT_MS,
            "grpc.use_local_subchannel_pool": 1,
            ...(tls?.serverName !== undefined && { "grpc.ssl_target_name_override": tls.serverName }),
        };
        this.#client = this.#connected();
    }

    open(token: string, events: StreamEvents): Stream {
        const metadata = metadataWith(token);
        const call = this.#client.makeBidiStreamRequest<Uint8Array, Uint8Array>(
            ATTACH,
            (message) => Buffer.from(message),
            plain,
            metadata,
        );
        return new GrpcStream(call, events);
    }

    /** Make a call; of a stream, send one request and return its response. */
    async call<Request extends DescMessage, Response extends DescMessage>(
        call: Call<Request, Response>,
        request: MessageShape<Request>,
        token: string,
        signal?: AbortSignal,
    ): Promise<MessageShape<Response>> {
        const { method } = call;
        const metadata = metadataWith(token);
        const write = (message: MessageShape<Request>) => Buffer.from(toBinary(call.request, message));
        const read = (bytes: Buffer) => fromBinary(call.response, plain(bytes));
        const arrived = new Deferred<MessageShape<Response>>();
        const responded = (error: ServiceError | null, response?: MessageShape<Response>) => {
            if (error !== null) arrived.reject(failureOf(error));
            else if (response !== undefined) arrived.resolve(response);
        };
        const stream = call.isStream
            ? this.#client.makeBidiStreamRequest(method, write, read, metadata)
            : undefined;
        if (stream !== undefined) exchange(stream, request, arrived, call.isNotice);
        const ongoing =
            stream ?? this.#client.makeUnaryRequest(method, write, read, request, metadata, responded);
        try {
            return await unlessAborted(arrived.promise, signal);
        } finally {
            if (signal?.aborted) ongoing.cancel();
        }
    }

    renew(): void {
        this.#client.close();
        this.#client = this.#connected();
    }

    close(): void {
        this.#client.close();
    }

    #connected(): GrpcClient {
        return new GrpcClient(this.#target, this.#credentials, this.#options);
    }
}

class GrpcStream implements Stream {
    #isOpen = false;
    #isClosed = false;
    readonly #timer: ReturnType<typeof setTimeout>;

    constructor(
        readonly call: ClientDuplexStream<Uint8Array, Uint8Array>,
        readonly events: StreamEvents,
    ) {
        // A client that writes before the initial metadata may not receive the reason of a refusal.
        this.#timer = setTimeout(() => this.#opened(), ACCEPTED_MS);
        call.on("metadata", () => this.#opened());
        call.on("data", (message: Uint8Array) => {
            if (!this.#isClosed) events.onMessage(message);
        });
        call.on("error", () => {}); // the status has it
        call.on("status", (ended: StatusObject) => this.#closed(failureOf(ended)));
    }

    send(message: Uint8Array): void {
        if (this.#isOpen && !this.#isClosed) this.call.write(message);
    }

    end(): void {
        this.call.end();
    }

    cancel(): void {
        this.call.cancel();
        this.#closed(new UnavailableError("the stream was cancelled"));
    }

    #opened(): void {
        if (this.#isOpen || this.#isClosed) return;
        this.#isOpen = true;
        clearTimeout(this.#timer);
        this.events.onOpen();
    }

    #closed(error: Error): void {
        if (this.#isClosed) return;
        this.#isClosed = true;
        clearTimeout(this.#timer);
        this.events.onClose(error);
    }
}

/**
 * Send one request on a stream, and settle `arrived` with its response.
 *
 * After a notice the server owes the response to the request. If the stream ends without it, its reason
 * does not apply to the request, whose outcome is unknown.
 */
function exchange<Request, Response>(
    stream: ClientDuplexStream<Request, Response>,
    request: Request,
    arrived: Deferred<Response>,
    isNotice: (message: Response) => boolean = () => false,
): void {
    let isAdmitted = false;
    stream.on("data", (message: Response) => {
        if (isNotice(message)) isAdmitted = true;
        else arrived.resolve(message);
        stream.end();
    });
    stream.on("error", () => {}); // the status has it
    stream.on("status", (ended: StatusObject) =>
        arrived.reject(isAdmitted ? new UnavailableError(LOST) : failureOf(ended)),
    );
    stream.write(request);
}

function metadataWith(token: string): Metadata {
    const metadata = new Metadata();
    if (token !== "") metadata.set("authorization", `Bearer ${token}`);
    return metadata;
}

/** Convert the status with which a stream has ended. */
function failureOf({ code, details, metadata }: StatusObject): Error {
    const [detail] = metadata.get(ERROR_METADATA);
    if (detail instanceof Uint8Array) return RefusedError.fromWire(fromBinary(ErrorSchema, detail));
    if (code === status.OK) return new UnavailableError("the server has ended the stream");
    return new UnavailableError(
        code === status.UNAVAILABLE
            ? `the server cannot be reached: UNAVAILABLE: ${withServerHint(details)}`
            : `${status[code]}: ${details}`,
    );
}

/** Return the same bytes without the methods of Node.js. */
function plain(bytes: Buffer): Uint8Array {
    return new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.length);
}

function buffer(bytes: Uint8Array | undefined): Buffer | null {
    return bytes === undefined ? null : Buffer.from(bytes);
}
