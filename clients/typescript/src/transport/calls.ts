/** The calls that are no stream of a device: publish, retract, search, forget. */

import type { DescMessage, MessageShape } from "@bufbuild/protobuf";
import {
    ForgetDeviceRequestSchema,
    ForgetDeviceResponseSchema,
    SearchRequestSchema,
    SearchResponseSchema,
} from "../generated/nearcast/v1/device_service_pb.js";
import {
    PublishRequestSchema,
    PublishResponseSchema,
    RetractRequestSchema,
    RetractResponseSchema,
} from "../generated/nearcast/v1/publisher_service_pb.js";
import type { PublishResponse } from "../generated/nearcast/v1/publisher_service_pb.js";

/** A call: its name at a gateway, its method at a server, and its messages. */
export interface Call<Request extends DescMessage, Response extends DescMessage> {
    readonly name: string;
    readonly method: string;
    readonly request: Request;
    readonly response: Response;
    /** Whether the method is a stream, of which one request and its response are used. */
    readonly isStream: boolean;
    /** Of a stream: whether a message only announces its end, and the response follows. */
    readonly isNotice?: (message: MessageShape<Response>) => boolean;
}

export const PUBLISH = {
    name: "publish",
    method: "/nearcast.v1.PublisherService/Publish",
    request: PublishRequestSchema,
    response: PublishResponseSchema,
    isStream: true,
    isNotice: ({ goAway }: PublishResponse) => goAway !== undefined && goAway.admittedCount > 0n,
} as const;

export const RETRACT = {
    name: "retract",
    method: "/nearcast.v1.PublisherService/Retract",
    request: RetractRequestSchema,
    response: RetractResponseSchema,
    isStream: false,
} as const;

export const SEARCH = {
    name: "search",
    method: "/nearcast.v1.DeviceService/Search",
    request: SearchRequestSchema,
    response: SearchResponseSchema,
    isStream: false,
} as const;

export const FORGET = {
    name: "forget",
    method: "/nearcast.v1.DeviceService/ForgetDevice",
    request: ForgetDeviceRequestSchema,
    response: ForgetDeviceResponseSchema,
    isStream: false,
} as const;

/** Makes calls with a token, which is empty if there is none. */
export interface Caller {
    call<Request extends DescMessage, Response extends DescMessage>(
        call: Call<Request, Response>,
        request: MessageShape<Request>,
        token: string,
        signal?: AbortSignal,
    ): Promise<MessageShape<Response>>;
}
