/** The HTTP calls of the gateway, with the token of this tab. */

import { storedToken } from "./address.js";

/** A refusal, or a gateway or server that cannot be reached. */
export class CallError extends Error {
    /** @param {string} message @param {number} status */
    constructor(message, status) {
        super(message);
        this.status = status;
    }
}

/** The headers of a request with the token of this tab, if there is one. @returns {Record<string, string>} */
export function authorization() {
    const token = storedToken();
    return token ? { Authorization: `Bearer ${token}` } : {};
}

/**
 * Make a call; return its response.
 * @param {string} name
 * @param {object} [body] absent for GET
 * @returns {Promise<any>}
 */
export async function call(name, body) {
    const headers = authorization();
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const request = { method: body ? "POST" : "GET", headers, body: body && JSON.stringify(body) };
    let response;
    try {
        response = await fetch(new URL(`../v1/${name}`, import.meta.url), request);
    } catch {
        throw new CallError("the gateway cannot be reached", 0);
    }
    const content = await response.json();
    if (!response.ok) throw new CallError(content.detail ?? content.title, response.status);
    return content;
}
