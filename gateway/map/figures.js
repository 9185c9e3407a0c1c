/** The cards of figures: counts, silence, latency and rates. */

import { Chart } from "./charts.js";
import { byId, element } from "./elements.js";
import { count, milliseconds, percent, plural } from "./texts.js";

/** @typedef {import("./recording.js").Recording} Recording */
/** @typedef {import("./vendor/nearcast.js").WatchFrame} WatchFrame */

/** The distributions of the card of latency: docs/protocol.md has them. */
const PUBLICATION = "publication_us";
const DELTA_DELAY = "delta_delay_ms";

export class Figures {
    #silence = new Chart(byId("silence-chart"), [
        { label: "polling", colour: "polling", dash: [4, 3] },
        { label: "reports a second", colour: "device", width: 2 },
    ]);
    #latency = new Chart(byId("latency-chart"), [
        { label: "publication", colour: "device" },
        { label: "publication, 99 %", colour: "next" },
        { label: "delta waits, 99 %", colour: "object" },
    ]);
    #rates = new Chart(byId("rates-chart"), [
        { label: "objects published a second", colour: "object" },
        { label: "deltas a second", colour: "device" },
    ]);

    /** Add a frame of the server. @param {WatchFrame} frame */
    add({ timeMs, sequence, devices, objects, rates, latencies }) {
        byId("figures-title").textContent = "Now";
        this.#showCounts([
            ["attached devices", devices?.attachedCount, "attached"],
            ["live objects", objects?.count, "objects"],
            ["devices in view", devices?.viewCount, "view-devices"],
            ["objects in view", objects?.viewCount, "view-objects"],
        ]);
        for (const id of ["silence-card", "rates-card"]) byId(id).hidden = rates === undefined;
        // The first frame of a stream has no rates yet.
        if (rates !== undefined && sequence > 1n) this.#addRates(Number(timeMs), rates);
        byId("latency-card").hidden = rates === undefined;
        this.#addLatencies(Number(timeMs), latencies);
    }

    /** @param {number} timeMs @param {WatchFrame["latencies"]} latencies */
    #addLatencies(timeMs, latencies) {
        const publication = latencies.find(({ name }) => name === PUBLICATION);
        const delay = latencies.find(({ name }) => name === DELTA_DELAY);
        if (publication === undefined && delay === undefined) return;
        if (publication !== undefined) byId("latency").textContent = milliseconds(publication.p50Ms);
        this.#latency.add(timeMs, [publication?.p50Ms ?? null, publication?.p99Ms ?? null, delay?.p99Ms ?? null]);
    }

    /** @param {number} timeMs @param {NonNullable<WatchFrame["rates"]>} rates */
    #addRates(timeMs, rates) {
        this.#silence.add(timeMs, [rates.pollingReports, rates.reports]);
        this.#rates.add(timeMs, [rates.objectsPublished, rates.deltas]);
        const polled = rates.pollingReportsTotal;
        if (polled < 1) return;
        byId("silent-share").textContent = percent(Math.max(0, 1 - Number(rates.reportsTotal) / polled));
        byId("silence-text").textContent =
            `${count(Number(rates.reportsTotal))} reports in place of ${count(polled)} since this page is open.`;
    }

    /** Draw the reports of a recorded run. @param {Recording} recording */
    open(recording) {
        this.clear(recording.header.start_ms);
        for (const { timeMs, reports, moves } of recording.rates()) this.#silence.add(timeMs, [moves, reports]);
    }

    /**
     * Show a moment of a recorded run.
     * @param {Recording} recording
     * @param {number} runMs
     * @param {number} devices that are there
     * @param {number} objects that live
     */
    showRecorded(recording, runMs, devices, objects) {
        const { reports, moves } = recording.figures(runMs);
        byId("figures-title").textContent = "In this run";
        this.#showCounts([
            ["devices", devices, "attached"],
            ["live objects", objects, "objects"],
            ["positions", moves, "moves"],
            ["reports", reports ?? undefined, "reports"],
        ]);
        byId("latency-card").hidden = true;
        byId("rates-card").hidden = true;
        byId("silence-card").hidden = reports === null;
        if (reports === null) return;
        byId("silent-share").textContent = moves === 0 ? "–" : percent(Math.max(0, 1 - reports / moves));
        byId("silence-text").textContent =
            `${plural(reports, "report")} in place of ${plural(moves, "position")} since the start.`;
    }

    /** Remove all values. @param {number | null} startMs of the recorded run that follows, if one does */
    clear(startMs = null) {
        for (const chart of [this.#silence, this.#latency, this.#rates]) chart.clear(startMs);
        byId("silent-share").textContent = byId("latency").textContent = "–";
        byId("silence-text").textContent = "";
    }

    recolour() {
        for (const chart of [this.#silence, this.#latency, this.#rates]) chart.recolour();
    }

    /** @param {[string, number | bigint | undefined, string][]} rows */
    #showCounts(rows) {
        const shown = rows.map(([name, value, id]) =>
            element(
                "div",
                {},
                element("dt", {}, name),
                element("dd", { "data-figure": id }, value === undefined ? "–" : count(Number(value))),
            ),
        );
        byId("counts").replaceChildren(...shown);
    }
}
