/** The card of the chosen device: its region and the end of it, its result and the parts of each score. */

import { drawing, element } from "./elements.js";
import { count, distance, duration, plural } from "./texts.js";

/** @typedef {import("./inspection.js").Inspection} Inspection */
/** @typedef {import("./inspection.js").Row} Row */

/** Objects shown beyond the result. */
const BUFFER_ROWS = 3;
const ROWS_MAX = 12;
const STATES = /** @type {Record<string, [string, string]>} */ ({
    DEVICE_STATE_IN_SYNC: ["in sync", "good"],
    DEVICE_STATE_CATCHING_UP: ["catching up", ""],
    DEVICE_STATE_DETACHED: ["disconnected", "bad"],
    DEVICE_STATE_PARKED: ["parked", "bad"],
});

const RECORDED =
    "Distances, lengths and scores are those at its true position. A recorded run does not have the state of the " +
    "connection, and of several subscriptions it has one.";

/**
 * The list of subscriptions, the chosen one, and a key that differs when the list does.
 * @typedef {{key: string, value: string, show: () => Node[]}} Choices
 */

/** @type {Choices} */
const NO_CHOICES = { key: "", value: "", show: () => [] };

/**
 * @typedef {object} Actions
 * @property {() => void} close
 * @property {(subscriptionId: number) => void} select
 */

/**
 * Show a device of the server.
 * @param {HTMLElement} card
 * @param {Inspection} found
 * @param {Actions} actions
 * @param {string} extra facts that only this page has about the device
 */
export function showDevice(card, found, actions, extra) {
    const { device, subscription } = found;
    const [state, kind] = STATES[device.state] ?? ["unknown", ""];
    const silent = Number(device.silent_ms);
    const badge = element("span", { class: `badge ${kind}` }, state);
    const body = [element("p", {}, badge, ` last message ${duration(silent)} ago`)];
    if (silent > 1000) {
        body.push(note(`Polling every second would have sent ${count(silent / 1000)} positions since then.`));
    }
    if (extra) body.push(note(extra));
    if (subscription === null) body.push(note("It has no subscription."));
    else body.push(...subscriptionParts(found));
    fill(card, device.device_id, actions.close, body, choices(device.subscriptions, subscription, actions.select));
}

/**
 * Show a device of a recorded run.
 * @param {HTMLElement} card
 * @param {string} id
 * @param {import("./recording.js").DeviceFigures} figures
 * @param {Inspection | null} found
 * @param {() => void} close
 */
export function showRecordedDevice(card, id, figures, found, close) {
    fill(card, id, close, recordedParts(figures, found));
}

/** @param {import("./recording.js").DeviceFigures} figures @param {Inspection | null} found */
function recordedParts(figures, found) {
    if (!figures.isKnown) return [note("The run has no device of this id.")];
    if (!figures.isLogged) return [note("The run has no reports and no result of this device, only its positions.")];
    if (!figures.isAttached) return [note("It has not attached yet.")];
    const since = figures.reports > 0 ? "Last report" : "No report since it attached";
    return [
        element("p", {}, `${plural(figures.reports, "report")}, ${plural(figures.moves, "position")} so far.`),
        note(`${since} ${duration(figures.silentMs)} ago.`),
        ...(found === null ? [note(missing(figures))] : subscriptionParts(found)),
        ...(found === null ? [] : [note(RECORDED)]),
    ];
}

/** @param {import("./recording.js").DeviceFigures} figures */
function missing({ hasSpec }) {
    return hasSpec
        ? "The run has no result of this time."
        : "It has no subscription that moves with it: a recorded run has results of those only.";
}

/** @param {HTMLElement} card @param {string} id @param {string} text @param {() => void} close */
export function showProblem(card, id, text, close) {
    fill(card, id, close, [note(text)]);
}

/**
 * Show the card. Its head and the list of subscriptions stay while they are the same, and keep the focus.
 * @param {HTMLElement} card
 * @param {string} id
 * @param {() => void} close
 * @param {Node[]} body
 * @param {Choices} list
 */
function fill(card, id, close, body, list = NO_CHOICES) {
    const key = `${id} ${list.key}`;
    if (card.dataset.shown !== key) {
        card.replaceChildren(head(id, close), ...list.show(), element("div", {}));
        card.dataset.shown = key;
    }
    const select = card.querySelector("select");
    if (select !== null) select.value = list.value;
    card.lastElementChild?.replaceChildren(...body);
    card.hidden = false;
}

/** @param {string} text */
function note(text) {
    return element("p", { class: "note" }, text);
}

/** @param {string} id @param {() => void} close */
function head(id, close) {
    const button = element("button", { type: "button", "aria-label": "Release the device" }, "×");
    button.addEventListener("click", close);
    return element("div", { class: "head" }, element("h2", {}, id), button);
}

/**
 * The list of a device's subscriptions, if there are several.
 * @param {any[]} known @param {any} chosen @param {(id: number) => void} select
 * @returns {Choices}
 */
function choices(known, chosen, select) {
    if (known.length < 2) return NO_CHOICES;
    const options = known.map((one) => [String(one.subscription_id), one.name || `subscription ${one.subscription_id}`]);
    return { key: JSON.stringify(options), value: String(chosen.subscription_id), show: () => [chooser(options, select)] };
}

/** @param {string[][]} options @param {(id: number) => void} select */
function chooser(options, select) {
    const shown = options.map(([value, name]) => element("option", { value }, name));
    const list = /** @type {HTMLSelectElement} */ (element("select", { "aria-label": "Subscription" }, ...shown));
    list.addEventListener("change", () => select(Number(list.value)));
    return element("p", {}, list);
}

/** @param {Inspection} found */
function subscriptionParts(found) {
    const { subscription, spec, rows } = found;
    const isTopK = Boolean(subscription.spec.top_k);
    const title = isTopK ? `Best ${spec.k} for ${spec.keywords.join(", ")}` : booleanTitle(spec);
    const parts = [element("h3", {}, title)];
    if (!subscription.awake) return [...parts, note("It is not evaluated now.")];
    parts.push(...regionParts(found, isTopK));
    if (rows.some(({ kind }) => kind === "result")) parts.push(isTopK ? scoreTable(found) : matchTable(rows));
    else parts.push(note("No object matches."));
    return parts;
}

/** @param {any} spec */
function booleanTitle(spec) {
    const clauses = spec.clauses.map((/** @type {any} */ { required, excluded }) =>
        [...required, ...excluded.map((/** @type {string} */ one) => `not ${one}`)].join(" and "),
    );
    return `All with ${clauses.join(", or ")} in a ${spec.moving ? "moving" : "fixed"} range`;
}

/** @param {Inspection} found @param {boolean} isTopK */
function regionParts({ subscription, rows, reachM, marginM }, isTopK) {
    if (!isTopK) return booleanRegionParts(subscription, marginM);
    const next = rows.find(({ kind }) => kind === "next");
    const buffered = rows.filter(({ kind }) => kind === "buffer").length;
    const margin = Number.isFinite(marginM)
        ? `It may move ${distance(marginM)} in any direction without a report, in most directions more.`
        : "It never has to report: it has every object that qualifies.";
    const facts = [
        ["margin", distance(marginM)],
        ["reach", distance(reachM)],
        ["in the buffer", `+${buffered}`],
    ];
    return [
        element(
            "dl",
            { class: "figures three" },
            ...facts.map(([name, text]) => element("div", {}, element("dt", {}, name), element("dd", {}, text))),
        ),
        note(margin),
        ...(next ? [ends(next)] : []),
    ];
}

/** @param {Row} next */
function ends(next) {
    const text = `The region ends where ${next.name} (${next.keywords.slice(0, 4).join(", ")}) could enter the result.`;
    return note(text);
}

/** @param {any} subscription @param {number} marginM */
function booleanRegionParts(subscription, marginM) {
    if (subscription.slack?.too_many) return [note("More objects match than the server sends: it has the nearest.")];
    const isFixed = !subscription.spec.boolean.moving;
    const text = isFixed
        ? "It never has to report: the range is fixed."
        : `It may move ${distance(marginM)}: it has all matches within that distance of its range.`;
    return [note(text)];
}

/** @param {Inspection} found */
function scoreTable({ rows, reachM }) {
    const shown = shownRows(rows);
    const longest = Math.max(Number.isFinite(reachM) ? reachM : 0, ...shown.map(({ lengthM }) => lengthM), 1);
    const header = ["", "Object", "Distance", "+ text", "Score"].map((text) => element("th", { scope: "col" }, text));
    const caption = element("caption", { class: "quiet" }, "Result, buffer and the next object");
    return element(
        "table",
        { class: "results" },
        caption,
        element("thead", {}, element("tr", {}, ...header)),
        element("tbody", {}, ...shown.map((row) => scoreRow(row, longest, reachM))),
    );
}

/** @param {Row[]} rows */
function shownRows(rows) {
    const result = rows.filter(({ kind }) => kind === "result").slice(0, ROWS_MAX);
    const buffer = rows.filter(({ kind }) => kind === "buffer").slice(0, BUFFER_ROWS);
    return [...result, ...buffer, ...rows.filter(({ kind }) => kind === "next")];
}

/** @param {Row} row @param {number} longest @param {number} reachM */
function scoreRow(row, longest, reachM) {
    const rank = row.kind === "result" ? element("span", { class: "rank" }, String(row.rank)) : String(row.rank);
    const name = element(
        "td",
        {},
        row.name,
        element("small", {}, row.keywords.join(", ")),
        bar(row, longest, reachM),
    );
    const cells = [distance(row.lengthM - row.textM), distance(row.textM), score(row.score)];
    return element(
        "tr",
        { class: row.kind, "data-object": row.id },
        element("td", {}, rank),
        name,
        ...cells.map((text) => element("td", {}, text)),
    );
}

/** @param {number} value */
function score(value) {
    return Number.isFinite(value) ? value.toFixed(3) : "–";
}

/** The parts of a length, distance then text, and the reach as a mark. @param {Row} row @param {number} longest @param {number} reachM */
function bar(row, longest, reachM) {
    const scale = 100 / longest;
    const distancePart = (row.lengthM - row.textM) * scale;
    const parts = [
        drawing("rect", { class: "rest", x: 0, y: 2, width: 100, height: 4 }),
        drawing("rect", { class: "distance", x: 0, y: 2, width: distancePart, height: 4 }),
        drawing("rect", { class: "text", x: distancePart, y: 2, width: row.textM * scale, height: 4 }),
    ];
    if (Number.isFinite(reachM)) {
        parts.push(drawing("rect", { class: "mark", x: Math.min(99, reachM * scale), y: 0, width: 1, height: 8 }));
    }
    return drawing("svg", { class: "parts", viewBox: "0 0 100 8", preserveAspectRatio: "none", "aria-hidden": "true" }, ...parts);
}

/** @param {Row[]} rows */
function matchTable(rows) {
    const header = ["", "Object", "Distance"].map((text) => element("th", { scope: "col" }, text));
    const matches = rows.filter(({ kind }) => kind === "result");
    const buffer = rows.filter(({ kind }) => kind === "buffer");
    const shown = [...matches.slice(0, ROWS_MAX), ...buffer.slice(0, BUFFER_ROWS)];
    return element(
        "table",
        { class: "results" },
        element("caption", {}, `${plural(matches.length, "match", "matches")}, and ${count(buffer.length)} beyond the range`),
        element("thead", {}, element("tr", {}, ...header)),
        element("tbody", {}, ...shown.map(matchRow)),
    );
}

/** @param {Row} row */
function matchRow(row) {
    const rank = row.kind === "result" ? element("span", { class: "rank" }, String(row.rank)) : "";
    return element(
        "tr",
        { class: row.kind, "data-object": row.id },
        element("td", {}, rank),
        element("td", {}, row.name, element("small", {}, row.keywords.join(", "))),
        element("td", {}, distance(row.lengthM)),
    );
}
