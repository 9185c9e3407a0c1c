/**
 * nearcast for browsers, React Native and Node.js: devices that show exact results and send almost
 * nothing.
 */

export { connect, Client } from "./client.js";
export type { AttachOptions, ConnectOptions } from "./client.js";
export { Device } from "./device.js";
export type { SubscribeOptions } from "./device.js";
export type { Subscription } from "./core/subscription.js";
export {
    ClosedError,
    NearcastError,
    RefusedError,
    StreamError,
    UnavailableError,
} from "./core/errors.js";
export type { Reason, Refusal } from "./core/errors.js";
export { clausesOf } from "./core/expressions.js";
export type { Expression } from "./core/expressions.js";
export type { Clause } from "./core/normal_form.js";
export type { Area, Frame, Point, Position } from "./core/frame.js";
export type { Bounds, ObjectArea, Polygon } from "./core/areas.js";
export type { Fix } from "./core/location.js";
export type { Motion } from "./core/request_sender.js";
export type {
    Change,
    ChangeKind,
    ChangeReason,
    Counters,
    Geofence,
    LiveObject,
    Match,
    OsRegion,
    OsRegions,
    SubscriptionState,
} from "./core/model.js";
export type {
    BooleanSpec,
    Circle,
    Range,
    Rectangle,
    RegionMode,
    Similarity,
    Spec,
    TopKSpec,
    Window,
} from "./core/specs.js";
export type { NewObject, Retraction } from "./publishing.js";
export type { Call, Caller } from "./transport/calls.js";
export { WebSocketTransport } from "./transport/websocket.js";
export type { WebSocketConstructor, WebSocketLike } from "./transport/websocket.js";
export type { Stream, StreamEvents, TokenSource, Transport } from "./transport/transport.js";
