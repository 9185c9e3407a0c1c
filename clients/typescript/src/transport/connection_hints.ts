/** Texts about failed connections. See `nearcast/transport/connection_hints.py`. */

/** A program cannot know which one it was. */
export const GATEWAY_HINT =
    "possible causes: no gateway at this address, an origin that its --origin does not allow, " +
    "a certificate that is not trusted, ws:// in place of wss://, or the reverse";

/** Hints by the report of `@grpc/grpc-js`, in which a server that only closes has the first one. */
const SERVER_HINTS: readonly (readonly [RegExp, string])[] = [
    [/Failed to connect \(/u, "does the server require TLS? Set the option tls of GrpcTransport"],
    [/wrong version number/u, "does the server use TLS? If not, leave out tls"],
    [
        /self-signed certificate|unable to (verify|get)/u,
        "its certificate is not from one of the roots: set others with tls.rootCertificates",
    ],
    [/ALTNAME_INVALID/u, "its certificate has another name: set it with tls.serverName"],
    [/ECONNREFUSED/u, "is a server running at this address?"],
    [/Name resolution failed/u, "is the name of the host right, and does this machine know it?"],
];

/** Return the report of `@grpc/grpc-js` on a failed connection, and the likely mistake behind it. */
export function withServerHint(report: string): string {
    const text = report.replace(/\s*\.?\s*Resolution note: $/u, "");
    const [, hint] = SERVER_HINTS.find(([pattern]) => pattern.test(text)) ?? [];
    return hint === undefined ? text : `${text}; ${hint}`;
}

/**
 * Return the code and the text of an error of the platform; empty if there are none.
 *
 * The `fetch` of Node.js has them in the cause of its error.
 */
export function reasonOf(error: unknown): string {
    const { cause }: { cause?: unknown } = Object(error);
    const { code, message }: { code?: unknown; message?: unknown } = Object(cause ?? error);
    const text = String(message ?? "").trim();
    if (typeof code !== "string" || text.includes(code)) return text;
    return text === "" ? code : `${code}: ${text}`;
}
