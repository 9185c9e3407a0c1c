/**
 * Carry out the steps of cases with the core of this SDK, as `tests/vectors/players.py` does in Python.
 */

import { fromJson, toJson } from "@bufbuild/protobuf";
import { AnchoredRegion, StationaryRegion } from "../src/core/anchored.js";
import { areaDistance, areaFrom, areaMeetsBox, planeArea } from "../src/core/areas.js";
import type { AreaShape, Box, ObjectArea } from "../src/core/areas.js";
import { Clock } from "../src/core/clock.js";
import { DeviceSession } from "../src/core/device_session.js";
import { DwellTimers } from "../src/core/dwell.js";
import { NearcastError, RefusedError } from "../src/core/errors.js";
import { clausesOf } from "../src/core/expressions.js";
import { frameFrom } from "../src/core/frame.js";
import type { Frame } from "../src/core/frame.js";
import { groundDistanceM, groundRadiusM } from "../src/core/ground.js";
import { normalisedKeyword } from "../src/core/keywords.js";
import { Location } from "../src/core/location.js";
import type { OsRegions } from "../src/core/model.js";
import { orientation } from "../src/core/orientation.js";
import { CircleRegion, FixedRegion, RectangleRegion } from "../src/core/ranges.js";
import type { Region } from "../src/core/region.js";
import { isSameSpec, readSpec } from "../src/core/specs.js";
import type { Spec } from "../src/core/specs.js";
import type { Subscription } from "../src/core/subscription.js";
import type { Watcher } from "../src/core/watcher.js";
import {
    AttachRequestSchema,
    AttachResponseSchema,
} from "../src/generated/nearcast/v1/device_service_pb.js";
import type { AttachRequest } from "../src/generated/nearcast/v1/device_service_pb.js";
import { FrameSchema } from "../src/generated/nearcast/v1/geometry_pb.js";
import { ObjectAreaSchema } from "../src/generated/nearcast/v1/objects_pb.js";
import { SubscriptionSpecSchema } from "../src/generated/nearcast/v1/subscriptions_pb.js";
import {
    buffered,
    double,
    fields,
    int,
    list,
    ms,
    num,
    pair,
    shape,
    text,
    writtenShape,
} from "./notation.js";
import type { Fields, Json } from "./notation.js";

/** Maps the operation of a step to the output. */
export type Player = (step: Fields) => Json;

type Operations = Record<string, (step: Fields) => Json>;

function player(operations: Operations): Player {
    return (step) => {
        const operation = operations[text(step["op"])];
        if (operation === undefined) throw new TypeError(`no operation ${text(step["op"])}`);
        return operation(step);
    };
}

function frameOf(value: Json | undefined): Frame {
    return frameFrom(fromJson(FrameSchema, value as Json));
}

function specOf(value: Json | undefined): Spec | undefined {
    return readSpec(fromJson(SubscriptionSpecSchema, value as Json));
}

function ids(found: Iterable<bigint>): Json {
    return [...found].map(String);
}

function framePlayer(given: Fields): Player {
    const frame = frameOf(given["frame"]);
    return player({
        project: (step) => {
            const [lon, lat] = [num(step["lon"]), num(step["lat"])];
            const { xM, yM } = frame.project(lon, lat);
            return { x_m: xM, y_m: yM, is_inside: frame.covers(lon, lat) };
        },
    });
}

function areaPlayer(given: Fields): Player {
    const area = () => shape(given["area"]);
    return player({
        orientation: ({ a, b, c }) => orientation(pair(a), pair(b), pair(c)),
        distance: (step) => areaDistance(area(), num(step["x_m"]), num(step["y_m"])),
        meets: ({ box }) => areaMeetsBox(area(), shape({ rectangle: box as Json }) as Box),
        project: ({ frame, area: degrees }) => {
            const found = areaFrom(fromJson(ObjectAreaSchema, degrees as Json)) as ObjectArea;
            return writtenShape(planeArea(found, frameOf(frame)) as AreaShape);
        },
    });
}

function regionOf(given: Fields): Region {
    switch (given["region"]) {
        case "top_k":
            return new AnchoredRegion(num(given["k"]));
        case "stationary":
            return new StationaryRegion(num(given["k"]));
        case "circle":
            return new CircleRegion(num(given["radius_m"]));
        case "rectangle":
            return new RectangleRegion(num(given["width_m"]), num(given["height_m"]));
        default:
            return new FixedRegion();
    }
}

function applyUpdate(region: Region, step: Fields): void {
    const [xM, yM] = pair(step["anchor"]);
    const bound = fields(step["bound"]);
    const add = list(step["add"]).map(buffered);
    const drop = list(step["drop"]).map(int);
    const isSnapshot = step["is_snapshot"] === true;
    if (isSnapshot) region.buffer.clear();
    if (region instanceof AnchoredRegion) region.update({ xM, yM }, num(bound["length_m"]), add, drop);
    if (region instanceof StationaryRegion) region.settle(ms(step["time_ms"] ?? "0"), drop, isSnapshot);
    if (region instanceof FixedRegion) {
        const { slack_m, too_many, matches_max } = bound;
        const slack = { slackM: num(slack_m), tooMany: too_many === true, matchesMax: num(matches_max) };
        region.update({ xM, yM }, slack, add, drop);
    }
}

function regionPlayer(given: Fields): Player {
    const region = regionOf(given);
    return player({
        update: (step) => {
            applyUpdate(region, step);
            return ids(region.buffer.keys());
        },
        evaluate: (step) => {
            const uncertaintyM = num(step["uncertainty_m"] ?? 0);
            const found = region.evaluate(
                num(step["x_m"]),
                num(step["y_m"]),
                ms(step["now_ms"]),
                uncertaintyM,
            );
            return {
                best: found.best.map(([lengthM, id]) => [lengthM, String(id)]),
                margin_m: double(found.marginM),
                exact: found.exact,
                is_lacking: found.isLacking ?? false,
                is_capped: found.isCapped ?? false,
                is_due: found.isDue ?? false,
            };
        },
        forget_expired: (step) => ids(region.forgetExpired(ms(step["now_ms"]))),
    });
}

/** Timers about a circle that moves with the device. */
function dwellPlayer(given: Fields): Player {
    const region = new CircleRegion(num(given["radius_m"]));
    const timers = new DwellTimers(num(given["dwell_ms"]), region);
    const created = new Map<bigint, number>();
    const createdMs = (id: bigint) => created.get(id) as number;
    const state = (step: Fields) => {
        const over = [...region.buffer.keys()].filter((id) => timers.isOver(id, ms(step["now_ms"])));
        return { over: ids(over), next_ms: String(timers.nextMs()) };
    };
    const point = (step: Fields) => ({ xM: num(step["x_m"]), yM: num(step["y_m"]) });
    return player({
        move: (step) => {
            timers.move(ms(step["now_ms"]), point(step), createdMs);
            return state(step);
        },
        hold: (step) => {
            for (const one of list(step["add"]).map(fields))
                created.set(int(one["id"]), ms(one["created_ms"]));
            const add = list(step["add"]).map(buffered);
            region.hold(region.anchor, add, list(step["drop"]).map(int));
            const added = add.map((one) => one.objectId);
            timers.hold(ms(step["now_ms"]), point(step), createdMs, added);
            return state(step);
        },
        forget: (step) => {
            timers.forget(list(step["ids"]).map(int));
            return state(step);
        },
        pass_time: (step) => ({ has_ended: timers.passTime(ms(step["now_ms"])), ...state(step) }),
    });
}

function clockPlayer(given: Fields): Player {
    let steadyMs = ms(given["steady_ms"]);
    let hasLeaped = false;
    const clock = new Clock(() => steadyMs);
    clock.onLeap = () => {
        hasLeaped = true;
    };
    const state = () => {
        const leaped = hasLeaped;
        hasLeaped = false;
        return { now_ms: String(clock.nowMs()), steady_ms: String(clock.steadyMs()), leaped };
    };
    return player({
        welcome: (step) => {
            clock.adjust(ms(step["time_ms"]), step["is_virtual"] === true);
            return state();
        },
        observe: (step) => {
            clock.observe(ms(step["time_ms"]));
            return state();
        },
        wait: (step) => {
            steadyMs += num(step["ms"]);
            return state();
        },
    });
}

function keywordPlayer(): Player {
    return player({ normalise: (step) => normalisedKeyword(text(step["keyword"])) });
}

function expressionPlayer(): Player {
    return player({
        clauses: (step) => {
            try {
                return clausesOf(text(step["text"])).map((one) => ({
                    required: [...one.required],
                    excluded: [...one.excluded],
                }));
            } catch (error) {
                if (!(error instanceof RefusedError)) throw error;
                const at = /at character (\d+)/u.exec(error.limit)?.[1];
                return {
                    refused: { field: error.field, character: at === undefined ? null : Number(at) },
                };
            }
        },
    });
}

function specPlayer(): Player {
    return player({
        read: ({ spec }) => ({ is_known: specOf(spec) !== undefined }),
        compare: ({ one, other }) => ({
            is_same: isSameSpec(specOf(one) as Spec, specOf(other) as Spec),
        }),
    });
}

function groundPlayer(): Player {
    return player({
        distance: (step) => {
            const other = [num(step["other_lon"]), num(step["other_lat"])] as const;
            return groundDistanceM(num(step["lon"]), num(step["lat"]), ...other);
        },
        radius: (step) => {
            const [lon, lat] = [num(step["lon"]), num(step["lat"])];
            return double(groundRadiusM(frameOf(step["frame"]), lon, lat, num(step["radius_m"])));
        },
        blur: (step) => {
            const random = list(step["random"]).map(num);
            const fix = { lon: num(step["lon"]), lat: num(step["lat"]) };
            const location = new Location(
                fix,
                num(step["privacy_radius_m"]),
                () => random.shift() as number,
            );
            const { lon, lat, marginM } = location.shared(frameOf(step["frame"]));
            return { lon, lat, margin_m: marginM };
        },
    });
}

/** A session without a stream. A clock that never jumps is set by the steps. */
class SessionPlayer {
    readonly session: DeviceSession;
    #steadyMs: number;
    #sent: AttachRequest[] = [];
    #watchers = new Map<Subscription, Watcher>();
    /** A watcher's first result is a change, too. */
    readonly #fresh = new Set<Watcher>();

    constructor(given: Fields) {
        this.#steadyMs = ms(given["steady_ms"]);
        const fix = {
            lon: num(given["lon"]),
            lat: num(given["lat"]),
            accuracyM: num(given["accuracy_m"]),
        };
        this.session = new DeviceSession({
            deviceId: text(given["device_id"]),
            nonce: Buffer.from(text(given["nonce"]), "base64"),
            clock: new Clock(() => this.#steadyMs),
            send: (request) => this.#sent.push(request),
            location: new Location(fix),
            prefetchM: num(given["prefetch_m"]),
            takeOver: given["take_over"] === true,
        });
        this.session.onMoved = () => {}; // the steps connect it again
    }

    play(step: Fields): Json {
        if (step["steady_ms"] !== undefined) this.#steadyMs = ms(step["steady_ms"]);
        let failure = {};
        try {
            this.#carryOut(step);
        } catch (error) {
            if (!(error instanceof NearcastError)) throw error;
            failure =
                error instanceof RefusedError ? { refused: snakeCase(error.field) } : { lost: true };
        }
        const sent = this.#sent.map((one) =>
            toJson(AttachRequestSchema, one, { useProtoFieldName: true }),
        );
        this.#sent = [];
        return { sent, ...failure, ...this.#device(), subscriptions: this.#subscriptions() };
    }

    #carryOut(step: Fields): void {
        const { session } = this;
        switch (step["op"]) {
            case "connect":
                return session.connect();
            case "disconnect":
                return session.disconnect();
            case "receive":
                return session.receive(fromJson(AttachResponseSchema, step["message"] as Json));
            case "move":
                return this.#move(step);
            case "pass_time":
                return session.passTime();
            case "beat":
                return session.beat();
            case "subscribe":
                session.subscribe(specOf(step["spec"]) as Spec, text(step["name"]));
                return undefined;
            case "unsubscribe":
                return session.unsubscribe(
                    session.subscriptions.get(num(step["subscription_id"])) as Subscription,
                );
            case "set_responsive":
                return session.setResponsive(step["is_responsive"] === true);
            default:
                throw new TypeError(`no operation ${text(step["op"])}`);
        }
    }

    #move(step: Fields): void {
        const optional = (name: string) => (step[name] === undefined ? undefined : num(step[name]));
        this.session.move(
            { lon: num(step["lon"]), lat: num(step["lat"]), accuracyM: optional("accuracy_m") },
            { headingDeg: optional("heading_deg"), speedMps: optional("speed_mps") },
        );
    }

    #device(): Fields {
        const { session } = this;
        const found = {
            now_ms: String(session.clock.nowMs()),
            is_online: session.isOnline,
            is_caught_up: session.isCaughtUp,
            is_waiting: session.isWaiting,
            next_expiry_ms: String(session.nextExpiryMs()),
            ...(session.lagOffset > 0n && { lag_offset: String(session.lagOffset) }),
        };
        return session.error === undefined ? found : { ...found, error: reasonOf(session.error) };
    }

    /** Write the subscriptions; one that has ended is written once more. */
    #subscriptions(): Json {
        for (const one of this.session.subscriptions.values()) {
            if (this.#watchers.has(one) || one.error !== undefined) continue;
            const watcher = one.watch();
            this.#watchers.set(one, watcher);
            this.#fresh.add(watcher);
        }
        const written = [...this.#watchers].map(([one, watcher]) => ({
            id: one.id,
            json: this.#written(one, watcher),
        }));
        this.#watchers = new Map([...this.#watchers].filter(([one]) => one.error === undefined));
        return written.sort((one, other) => one.id - other.id).map(({ json }) => json);
    }

    #written(one: Subscription, watcher: Watcher): Json {
        const hasNews = watcher.noticed.take() || this.#fresh.delete(watcher);
        const changes = hasNews ? one.difference(watcher) : [];
        const found = {
            id: one.id,
            name: one.name,
            state: one.state,
            results: one.results().map((match) => [String(match.object.id), match.score]),
            changes: changes.map((change) => [
                change.kind,
                String(change.object.id),
                change.rank,
                change.reason,
            ]),
            fence_m: double(one.fenceM()),
        };
        return one.error === undefined ? found : { ...found, error: reasonOf(one.error) };
    }
}

function reasonOf(error: Error): string {
    return error instanceof RefusedError ? error.reason : "CLOSED";
}

/** Write a path of fields as the protocol does. */
function snakeCase(field: string): string {
    return field.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}

function sessionPlayer(given: Fields): Player {
    const sessions = new SessionPlayer(given);
    return (step) => sessions.play(step);
}

/** The same, of which the output is the time to the next fix, for two speeds. */
function nextFixPlayer(given: Fields): Player {
    const sessions = new SessionPlayer(given);
    return (step) => {
        sessions.play(step);
        const seconds = (vMaxMps: number) => double(sessions.session.nextFixMs(vMaxMps) / 1000);
        return { at_1_5_mps: seconds(1.5), at_36_mps: seconds(36) };
    };
}

/** The same, with steps of which the output is the circles of a subscription; others have none. */
function osRegionsPlayer(given: Fields): Player {
    const sessions = new SessionPlayer(given);
    return (step) => {
        if (step["op"] !== "os_regions") {
            sessions.play(step);
            return null;
        }
        const number = num(step["subscription_id"] ?? 1);
        const subscription = sessions.session.subscriptions.get(number) as Subscription;
        try {
            return writtenRegions(subscription.osRegions(num(step["radius_m"]), num(step["limit"])));
        } catch (error) {
            if (!(error instanceof RefusedError)) throw error;
            return { refused: snakeCase(error.field) };
        }
    };
}

function writtenRegions({ places, refresh, mustStayAwake }: OsRegions): Json {
    return {
        places: places.map((one) => [String(one.object?.id), one.radiusM, String(one.untilMs)]),
        refresh_m: refresh?.radiusM ?? null,
        must_stay_awake: mustStayAwake,
    };
}

/** Players by subject. */
export const PLAYERS: Record<string, (given: Fields) => Player> = {
    frames: framePlayer,
    areas: areaPlayer,
    "top-k": regionPlayer,
    ranges: regionPlayer,
    dwell: dwellPlayer,
    clocks: clockPlayer,
    keywords: keywordPlayer,
    expressions: expressionPlayer,
    specs: specPlayer,
    ground: groundPlayer,
    sessions: sessionPlayer,
    "next-fix": nextFixPlayer,
    "os-regions": osRegionsPlayer,
    walks: sessionPlayer,
};
