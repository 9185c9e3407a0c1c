/**
 * A WebSocket server that speaks the frame contract of gateways: one binary frame is one message.
 *
 * It serves one device. Tests decide what it sends; it keeps what it has received.
 */

import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { WebSocketServer } from "ws";
import type { WebSocket } from "ws";
import {
    AttachRequestSchema,
    AttachResponseSchema,
} from "../src/generated/nearcast/v1/device_service_pb.js";
import type { AttachRequest } from "../src/generated/nearcast/v1/device_service_pb.js";
import { Cause } from "../src/generated/nearcast/v1/subscriptions_pb.js";
import type { Delta, SubscriptionSchema } from "../src/generated/nearcast/v1/subscriptions_pb.js";

type Event = NonNullable<MessageInitShape<typeof AttachResponseSchema>["event"]>;
type DeltaFields = Partial<Pick<Delta, "subscriptionId" | "snapshot" | "cause" | "reportSequence">> & {
    bound?:
        | { case: "reach"; value: { lengthM: number } }
        | { case: "slack"; value: { slackM: number } };
};

const NOW_MS = 1_000_000;
const AREA = { lonMin: 14, latMin: 35, lonMax: 15, latMax: 36, lon0Deg: 14.5, lat0Deg: 35.5 };
const FRAME = { ...AREA, xMPerDeg: 90_525.6, yMPerDeg: 111_195, maxdistM: 143_384 };
const LIMITS = { marginMMax: 5000, matchesMax: 10, nameLengthMax: 128 };

/** What a client has offered, and the first text frame. */
export interface Handshake {
    readonly protocols: string;
    readonly url: string;
    text?: string;
}

/**
 * What the server does with a request; by default it answers as a server with one object near the device.
 */
export type Answer = (server: FrameServer, request: AttachRequest) => void;

export class FrameServer {
    readonly requests: AttachRequest[] = [];
    readonly handshakes: Handshake[] = [];
    readonly closed: number[] = [];
    answer: Answer = answerAll;
    /** Called for each new connection in place of waiting for a hello. */
    onConnect: (server: FrameServer) => void = () => {};
    nowMs = NOW_MS;
    version = 0n;
    epoch = 5n;
    listed: MessageInitShape<typeof SubscriptionSchema>[] = [];
    readonly #server: WebSocketServer;
    #socket: WebSocket | undefined;

    private constructor() {
        this.#server = new WebSocketServer({
            port: 0,
            host: "127.0.0.1",
            handleProtocols: () => "nearcast.v1",
        });
        this.#server.on("connection", (socket, request) => this.#connected(socket, request));
    }

    static async start(): Promise<FrameServer> {
        const server = new FrameServer();
        await once(server.#server, "listening");
        return server;
    }

    get target(): string {
        return `ws://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
    }

    async stop(): Promise<void> {
        for (const socket of this.#server.clients) socket.terminate();
        this.#server.close();
        await once(this.#server, "close");
    }

    /** Break the connection without a goodbye. */
    cut(): void {
        this.#socket?.terminate();
    }

    close(code: number): void {
        this.#socket?.close(code);
    }

    send(event: Event): void {
        const response = create(AttachResponseSchema, { event });
        this.#socket?.send(toBinary(AttachResponseSchema, response));
    }

    /** Send a frame that is no message. */
    sendGarbage(): void {
        this.#socket?.send(Uint8Array.of(255, 255, 255));
    }

    welcome(resumed: boolean): void {
        const { version, epoch } = this;
        this.send({
            case: "welcome",
            value: {
                frame: FRAME,
                limits: LIMITS,
                timeMs: BigInt(this.nowMs),
                subscriptions: this.listed,
                version,
                epoch,
                resumed,
                leaseMs: 60_000n,
            },
        });
    }

    /** Send a delta of subscription 1 with objects at 14.5 degrees and a bound in metres. */
    delta(ids: readonly bigint[], others: DeltaFields = {}): void {
        this.version += 1n;
        const add = ids.map((id) => ({
            object: { id, position: HERE, point: { xM: 0, yM: 0 }, expiryMs: LATE },
        }));
        const anchor = { xM: 0, yM: 0 };
        const bound = { case: "reach", value: { lengthM: 1000 } } as const;
        const value = {
            version: this.version,
            subscriptionId: 1,
            anchor,
            bound,
            add,
            cause: Cause.PUBLISHED,
            timeMs: BigInt(this.nowMs),
            ...others,
        };
        this.send({ case: "delta", value });
    }

    kinds(): (string | undefined)[] {
        return this.requests.map((one) => one.command.case);
    }

    #connected(socket: WebSocket, request: IncomingMessage): void {
        this.#socket = socket;
        const protocols = request.headers["sec-websocket-protocol"] ?? "";
        const handshake: Handshake = { protocols, url: request.url ?? "" };
        this.handshakes.push(handshake);
        socket.on("close", (code) => this.closed.push(code));
        socket.on("message", (data: Buffer, isBinary) => {
            if (!isBinary) {
                handshake.text = data.toString();
                return;
            }
            const message = fromBinary(AttachRequestSchema, data);
            this.requests.push(message);
            this.answer(this, message);
        });
        this.onConnect(this);
    }
}

const HERE = { lon: 14.5, lat: 35.5 };
const LATE = 9_007_199_254_740_991n;

/** Answer as a server does: it resumes a device of its epoch, and has object 7 for each subscription. */
export const answerAll: Answer = (server, { command }) => {
    switch (command.case) {
        case "hello":
            server.welcome(command.value.epoch === server.epoch);
            break;
        case "subscribe": {
            const { subscriptionId, spec, name } = command.value;
            if (spec !== undefined) server.listed = [{ subscriptionId, spec, name }];
            server.delta([7n], { subscriptionId, snapshot: true, cause: Cause.SUBSCRIBED });
            break;
        }
        case "report":
            server.delta([8n], {
                cause: Cause.REPORTED,
                reportSequence: command.value.sequence,
                bound: INFINITE,
            });
            break;
        case "unsubscribe":
            server.send({
                case: "unsubscribed",
                value: { subscriptionId: command.value.subscriptionId },
            });
            break;
        case "ping":
            server.send({ case: "pong", value: { number: command.value.number } });
            break;
        default:
    }
};

const INFINITE = { case: "reach" as const, value: { lengthM: Infinity } };
