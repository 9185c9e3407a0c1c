/** The slider over a recorded run: its time, play and pause, speed. */

import { byId } from "./elements.js";
import { clock } from "./texts.js";

/** @typedef {import("./recording.js").Recording} Recording */

export class Player {
    /** Time of the run in milliseconds. */
    timeMs = 0;
    /** @type {Recording | null} */
    recording = null;
    /** Called when the time has changed. */
    onChange = () => {};
    /** Called when the user goes back to the live view. */
    onLive = () => {};
    #plays = false;
    #lastMs = 0;

    constructor() {
        byId("moment").addEventListener("input", () => {
            this.#setPlays(false);
            this.seek((byId("moment").valueAsNumber / 1000) * (this.recording?.lengthMs ?? 0));
        });
        byId("play").addEventListener("click", () => this.#setPlays(!this.#plays));
        byId("live").addEventListener("click", () => this.onLive());
    }

    /** Show a moment of a run, or none. @param {Recording | null} recording @param {number} timeMs */
    open(recording, timeMs = 0) {
        this.recording = recording;
        byId("player").hidden = recording === null;
        byId("tools").hidden = recording !== null;
        this.#setPlays(false);
        if (recording !== null) this.seek(timeMs);
    }

    /** @param {number} timeMs */
    seek(timeMs) {
        const lengthMs = this.recording?.lengthMs ?? 0;
        this.timeMs = Math.min(Math.max(0, timeMs), lengthMs);
        const moment = byId("moment");
        moment.value = String((this.timeMs / (lengthMs || 1)) * 1000);
        moment.setAttribute("aria-valuetext", clock(this.timeMs));
        byId("moment-text").textContent = clock(this.timeMs);
        this.onChange();
    }

    play() {
        this.#setPlays(true);
    }

    /** Advance a run that plays. Call it once a frame. @param {number} nowMs */
    tick(nowMs) {
        if (!this.#plays || this.recording === null) return;
        const next = this.timeMs + (nowMs - this.#lastMs) * Number(byId("speed").value);
        this.#lastMs = nowMs;
        if (next >= this.recording.lengthMs) this.#setPlays(false);
        this.seek(next);
    }

    /** @param {boolean} plays */
    #setPlays(plays) {
        if (plays && this.recording !== null && this.timeMs >= this.recording.lengthMs) this.timeMs = 0;
        this.#plays = plays;
        this.#lastMs = performance.now();
        const button = byId("play");
        button.setAttribute("aria-pressed", String(plays));
        button.setAttribute("aria-label", plays ? "Pause" : "Play");
        button.textContent = plays ? "❚❚" : "▶";
    }
}
