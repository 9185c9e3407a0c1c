/** Publish an object and subscribe a device of this page, each with two clicks: a button and a place. */

import { storedToken } from "./address.js";
import { call } from "./calls.js";
import { byId } from "./elements.js";
import { connect } from "./vendor/nearcast.js";

/** @typedef {{lng: number, lat: number}} Place */
/** @typedef {"publish" | "subscribe" | ""} Tool */

export class Tools {
    /** The tool that waits for a place. @type {Tool} */
    tool = "";
    /** Called with a text for the user. @type {(text: string) => void} */
    onHint = () => {};
    /** Called when this page's device has a new place. @type {(deviceId: string) => void} */
    onDevice = () => {};
    /** Returns the middle of the map. @type {() => Place} */
    middle = () => ({ lng: 0, lat: 0 });
    /** @type {any} */
    #device = null;
    #deviceId = `map-${crypto.randomUUID().slice(0, 8)}`;

    constructor() {
        byId("publish").addEventListener("click", () => this.choose(this.tool === "publish" ? "" : "publish"));
        byId("subscribe").addEventListener("click", () => this.choose(this.tool === "subscribe" ? "" : "subscribe"));
        byId("here").addEventListener("click", () => this.use(this.middle()));
        byId("tools").addEventListener("submit", (/** @type {Event} */ event) => {
            event.preventDefault();
            if (this.tool !== "") this.use(this.middle());
        });
    }

    /** Counts of this page's own device; empty for another one. @param {string} deviceId */
    factsOf(deviceId) {
        if (this.#device === null || deviceId !== this.#deviceId) return "";
        const { moves, reports } = this.#device.counters;
        return `This page's device: ${moves + 1} positions, ${reports} reports.`;
    }

    /** Wait for a place on the map. @param {Tool} tool */
    choose(tool) {
        this.tool = tool;
        byId("publish").setAttribute("aria-pressed", String(tool === "publish"));
        byId("subscribe").setAttribute("aria-pressed", String(tool === "subscribe"));
        byId("tool-more").hidden = tool === "";
        byId("ttl-field").hidden = tool !== "publish";
        byId("k-field").hidden = tool !== "subscribe";
        document.querySelector(".stage")?.classList.toggle("aims", tool !== "");
        if (tool === "publish") this.onHint("Click the place of the object.");
        else if (tool === "subscribe") this.onHint("Click the place of your device; click again to move it.");
        else this.onHint("");
    }

    /** Use the tool at a place. @param {Place} place */
    async use(place) {
        const keywords = byId("words").value.split(/[\s,]+/).filter(Boolean);
        if (keywords.length === 0) return this.onHint("Give a keyword.");
        try {
            if (this.tool === "publish") await this.#publish(place, keywords);
            else await this.#subscribe(place, keywords);
        } catch (error) {
            this.onHint(error instanceof Error ? error.message : String(error));
        }
    }

    /** @param {Place} place @param {string[]} keywords */
    async #publish({ lng, lat }, keywords) {
        const object = { position: { lon: lng, lat }, keywords, ttl_ms: String(byId("ttl").valueAsNumber * 1000) };
        const { ids } = await call("publish", { objects: [object] });
        this.onHint(`Object ${ids[0]} is published.`);
    }

    /** @param {Place} place @param {string[]} keywords */
    async #subscribe({ lng, lat }, keywords) {
        const position = { lon: lng, lat };
        if (this.#device === null || this.#device.error !== undefined) this.#device = await this.#attach(position);
        else this.#device.move(position);
        const spec = { kind: /** @type {const} */ ("topK"), keywords, k: byId("k").valueAsNumber };
        await this.#device.subscribe(spec, { name: "map" });
        this.onHint(`Device ${this.#deviceId}: click again to move it.`);
        this.onDevice(this.#deviceId);
    }

    /** @param {{lon: number, lat: number}} position */
    #attach(position) {
        const gateway = new URL("/", import.meta.url);
        gateway.protocol = gateway.protocol.replace("http", "ws");
        const client = connect(gateway.href, { token: storedToken() });
        return client.attach(this.#deviceId, position);
    }
}
