/** The core without I/O, for transports and tests of one's own. */

export { Clock } from "./core/clock.js";
export { DeviceSession } from "./core/device_session.js";
export type { SessionOptions } from "./core/device_session.js";
export { Location } from "./core/location.js";
export { Frame } from "./core/frame.js";
export { AnchoredRegion, StationaryRegion } from "./core/anchored.js";
export { CircleRegion, FixedRegion, RectangleRegion } from "./core/ranges.js";
export type { Buffered, Evaluation, Region } from "./core/region.js";
export { AttachRequestSchema, AttachResponseSchema } from "./generated/nearcast/v1/device_service_pb.js";
export type { AttachRequest, AttachResponse } from "./generated/nearcast/v1/device_service_pb.js";
