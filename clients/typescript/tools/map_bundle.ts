/** What the map page of the gateway uses of the SDK: devices, and the messages of Watch. */

import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { WatchFrameSchema, WatchRequestSchema } from "../src/generated/nearcast/v1/control_service_pb.js";
import type { WatchFrame } from "../src/generated/nearcast/v1/control_service_pb.js";

export { connect } from "../src/client.js";
export type { WatchFrame };

export function encodeWatchRequest(fields: MessageInitShape<typeof WatchRequestSchema>): Uint8Array<ArrayBuffer> {
    return toBinary(WatchRequestSchema, create(WatchRequestSchema, fields));
}

export function decodeWatchFrame(bytes: Uint8Array): WatchFrame {
    return fromBinary(WatchFrameSchema, bytes);
}
