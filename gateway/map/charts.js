/** Charts of the last minutes, by uPlot. */

import { colour } from "./colours.js";
import { clock } from "./texts.js";

/** @typedef {{label: string, colour: string, width?: number, dash?: number[]}} Series */

const POINTS_MAX = 180;
const HEIGHT_PX = 96;
const ofDay = new Intl.DateTimeFormat("en", { timeStyle: "medium", hourCycle: "h23" });
/** Distances of the times that are named. */
const INCREMENTS_S = [10, 30, 60, 120, 300, 600, 1200, 3600, 7200, 14_400, 43_200, 86_400];

/**
 * The range of times: at least a minute, so that the first points are not years wide.
 * @param {unknown} _ @param {number | null} least @param {number | null} most
 * @returns {[number, number]}
 */
function lastMinute(_, least, most) {
    const end = most ?? Date.now() / 1000;
    return [Math.min(least ?? end, end - 60), end];
}

export class Chart {
    #element;
    #series;
    /** @type {(number | null)[][]} */
    #rows;
    /** @type {any} */
    #plot = null;
    /** Start of a recorded run, from which its times count; null for times of the day. @type {number | null} */
    #startMs = null;

    /**
     * @param {HTMLElement} element
     * @param {Series[]} series
     */
    constructor(element, series) {
        this.#element = element;
        this.#series = series;
        this.#rows = [[], ...series.map(() => [])];
        new ResizeObserver(() => this.#fit()).observe(element);
    }

    /** Add the values of a time; null where there is none. @param {number} timeMs @param {(number | null)[]} values */
    add(timeMs, values) {
        const times = this.#rows[0];
        if (times.length > 0 && timeMs / 1000 <= Number(times[times.length - 1])) return;
        [timeMs / 1000, ...values].forEach((value, i) => {
            this.#rows[i].push(value);
            if (this.#rows[i].length > POINTS_MAX) this.#rows[i].shift();
        });
        this.#draw();
    }

    /** Remove all values. @param {number | null} startMs of the recorded run that follows, if one does */
    clear(startMs = null) {
        this.#startMs = startMs;
        for (const row of this.#rows) row.length = 0;
        this.recolour();
    }

    /** Take the colours of the theme. */
    recolour() {
        this.#plot?.destroy();
        this.#plot = null;
        this.#draw();
    }

    #draw() {
        if (this.#plot === null && this.#element.clientWidth > 0) this.#create();
        this.#plot?.setData(this.#rows);
    }

    /** The colour of a series in the legend. @type {(plot: unknown, number: number) => string} */
    #fill = (_, number) => colour(this.#series[number - 1].colour);

    #fit() {
        this.#plot?.setSize({ width: this.#element.clientWidth, height: HEIGHT_PX });
    }

    /** The texts of times: of the day, or since the start of a run. */
    #clock() {
        const startMs = this.#startMs;
        const text = (/** @type {number} */ ms) => (startMs === null ? ofDay.format(ms) : clock(ms - startMs));
        const values = (/** @type {unknown} */ _, /** @type {number[]} */ times) => times.map((time) => text(time * 1000));
        return { values, incrs: INCREMENTS_S };
    }

    #create() {
        const axis = { stroke: colour("muted"), font: "10px system-ui, sans-serif", ticks: { show: false } };
        const options = {
            width: this.#element.clientWidth,
            height: HEIGHT_PX,
            padding: [6, 18, 0, 0],
            cursor: { show: false },
            legend: { show: true, live: false, markers: { width: 0, fill: this.#fill } },
            scales: { x: { time: true, range: lastMinute }, y: { range: (/** @type {any} */ _, /** @type {number} */ __, /** @type {number} */ most) => [0, Math.max(most, 1) * 1.1] } },
            axes: [
                { ...axis, grid: { show: false }, size: 20, space: 70, ...this.#clock() },
                { ...axis, grid: { stroke: colour("grid"), width: 1 }, size: 38, space: 26 },
            ],
            series: [
                {},
                ...this.#series.map((one) => ({
                    label: one.label,
                    stroke: colour(one.colour),
                    width: one.width ?? 1.6,
                    dash: one.dash,
                    points: { show: false },
                })),
            ],
        };
        this.#plot = new uPlot(options, this.#rows, this.#element);
    }
}
