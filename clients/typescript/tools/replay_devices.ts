/**
 * The devices of a replay, in Node.js behind a gateway: `nearcast demo --gateway`.
 *
 * Reads one command a line from the standard input, as JSON, and responds to each with a line. Ids and
 * times are texts. Specs are messages `SubscriptionSpec`, in base64.
 */

import { createInterface } from "node:readline";
import { fromBinary } from "@bufbuild/protobuf";
import { WebSocket } from "ws";
import { readSpec } from "../src/core/specs.js";
import { SubscriptionSpecSchema } from "../src/generated/nearcast/v1/subscriptions_pb.js";
import { connect } from "../src/index.js";
import type { Change, Counters, Device, Spec, Subscription } from "../src/index.js";

/** Devices that wait for their first results together. */
const AT_ONCE = 32;
const NS_PER_MS = 1e6;
const NO_COUNTS: Counters = {
    moves: 0,
    reports: 0,
    deltas: 0,
    objects: 0,
    bytesSent: 0,
    bytesReceived: 0,
};

interface Place {
    readonly id: string;
    readonly lon: number;
    readonly lat: number;
}

interface Newcomer extends Place {
    readonly specs: readonly string[];
}

interface Move extends Place {
    readonly headingDeg: number;
    readonly speedMps: number;
}

type Command =
    | { readonly op: "attach"; readonly devices: readonly Newcomer[] }
    | { readonly op: "move"; readonly fixes: readonly Move[] }
    | { readonly op: "passTime"; readonly timeMs: string }
    | { readonly op: "publishing"; readonly seenId: string }
    | { readonly op: "sync" }
    | { readonly op: "results" }
    | { readonly op: "counts" };

const [target] = process.argv.slice(2);
if (target === undefined) throw new Error("usage: replay_devices.js ws://HOST:PORT");
const client = connect(target, { webSocket: WebSocket });
const devices = new Map<string, Device>();
const held: Subscription[] = [];
let seenId = 0n;
let latenciesMs: number[] = [];

function readWanted(text: string): Spec {
    const spec = readSpec(fromBinary(SubscriptionSpecSchema, Buffer.from(text, "base64")));
    if (spec === undefined) throw new Error("this SDK does not know the spec of a subscription");
    return spec;
}

/** Attach a device with its subscriptions; return them with their numbers. */
async function attach({ id, lon, lat, specs }: Newcomer): Promise<Subscription[]> {
    const device = await client.attach(id, { lon, lat });
    devices.set(id, device);
    return Promise.all(specs.map((text) => device.subscribe(readWanted(text))));
}

async function attachAll(newcomers: readonly Newcomer[]): Promise<number[][]> {
    const numbers: number[][] = [];
    for (let begin = 0; begin < newcomers.length; begin += AT_ONCE) {
        const found = await Promise.all(newcomers.slice(begin, begin + AT_ONCE).map(attach));
        for (const subscriptions of found) {
            held.push(...subscriptions);
            numbers.push(subscriptions.map((one) => one.id));
            for (const one of subscriptions) void watch(one);
        }
    }
    return numbers;
}

/** Measure the time from publication to the change of a result, as an app would see it. */
async function watch(subscription: Subscription): Promise<void> {
    for await (const change of subscription.changes()) {
        if (isNew(change)) {
            const { buffer, byteOffset } = change.object.payload;
            const sentNs = new DataView(buffer, byteOffset).getBigInt64(0, true);
            latenciesMs.push(Number(process.hrtime.bigint() - sentNs) / NS_PER_MS);
        }
    }
}

function isNew({ kind, reason, object }: Change): boolean {
    return kind === "entered" && reason === "published" && object.id > seenId;
}

function move({ id, ...fix }: Move): void {
    const device = devices.get(id);
    if (device === undefined) throw new Error(`device ${id} has not attached`);
    device.move(fix);
}

/** The state, the generation of weights, and the ids and scores of each subscription. */
function results(): unknown[] {
    return held.map((one) => {
        const found = one.results();
        const ids = found.map(({ object }) => String(object.id));
        return [one.state, String(one.idfGeneration), ids, found.map(({ score }) => score)];
    });
}

/** The sums of the counters, and the latencies since the last call. */
function counts(): object {
    const sums = { ...NO_COUNTS };
    for (const { counters } of devices.values()) {
        for (const name of Object.keys(sums) as (keyof Counters)[]) sums[name] += counters[name];
    }
    const since = latenciesMs;
    latenciesMs = [];
    return { ...sums, latenciesMs: since };
}

async function respond(command: Command): Promise<unknown> {
    switch (command.op) {
        case "attach":
            return attachAll(command.devices);
        case "move":
            return command.fixes.forEach(move);
        case "passTime":
            return client.observeTime(Number(command.timeMs));
        case "publishing":
            seenId = BigInt(command.seenId);
            return undefined;
        case "sync":
            return client.sync();
        case "results":
            return results();
        case "counts":
            return counts();
    }
}

for await (const line of createInterface({ input: process.stdin })) {
    const value = await respond(JSON.parse(line) as Command);
    process.stdout.write(`${JSON.stringify(value ?? null)}\n`);
}
await client.close();
