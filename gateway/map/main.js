/** The live map: joins the stream of the server, the canvas, the figures and the address. */

import { keepToken, readAddress, writeAddress } from "./address.js";
import { BaseMap } from "./base_map.js";
import { chooseTheme, followSystem, theme } from "./colours.js";
import { authorization, CallError } from "./calls.js";
import { showDevice, showProblem, showRecordedDevice } from "./device_card.js";
import { byId } from "./elements.js";
import { Figures } from "./figures.js";
import { drawInspection, inspect } from "./inspection.js";
import { latitude, longitude, metre } from "./mercator.js";
import { Player } from "./player.js";
import { Points } from "./points.js";
import { inspectRecorded } from "./recorded_device.js";
import { roadsOf, waterOf } from "./recorded_ground.js";
import { readRecording } from "./recording.js";
import { Scene } from "./scene.js";
import { distance } from "./texts.js";
import { Tools } from "./tools.js";
import { Watch } from "./watch.js";

/** @typedef {[number, number, number, number]} Bounds */

const WORLD = /** @type {Bounds} */ ([-180, -85, 180, 85]);
/** Time after which a view that has stopped is watched. */
const SETTLED_MS = 250;
const INSPECT_MS = 1000;
/** Intervals of frames: while something moves, and while objects fade. */
const MOVING_MS = 33;
const FADING_MS = 250;
const SCALE_PX = 96;

const place = readAddress();
const scene = new Scene();
const base = new BaseMap(byId("map"));
const points = new Points(byId("points"));
const watch = new Watch(scene);
const figures = new Figures();
const player = new Player();
const tools = new Tools();

/** @type {import("./region.js").Plane | null} */
let plane = null;
/** @type {number | null} the subscription that the user selected */
let subscriptionId = null;
let isViewKnown = place.view !== null;
/** Whether the chosen device is to be shown once its region is known. */
let isFocusDue = place.device !== "" && place.view === null;
let isDirty = true;
let drawnMs = 0;
let loopedMs = 0;
let frameCount = 0;
let motion = "";

// The map and its canvas.

function draw() {
    isDirty = false;
    drawnMs = performance.now();
    if (player.recording === null || !player.recording.hasRun) scene.nowMs = watch.nowMs();
    motion = points.draw(scene, base.view());
    report();
}

/** Counts for tests and measurements, as data of the canvas. */
function report() {
    const { dataset } = byId("points");
    dataset.drawn = String(points.drawn);
    dataset.density = String(scene.objectGrid !== null || scene.deviceGrid !== null);
}

function loop() {
    const nowMs = performance.now();
    if (drawnMs > loopedMs) byId("points").dataset.frames = String(++frameCount);
    loopedMs = nowMs;
    player.tick(nowMs);
    const waitMs = motion === "moving" ? MOVING_MS : FADING_MS;
    if (isDirty || (motion !== "" && nowMs - drawnMs >= waitMs)) draw();
    requestAnimationFrame(loop);
}

let settling = 0;
base.map.on("move", () => {
    draw();
    clearTimeout(settling);
    settling = setTimeout(settle, SETTLED_MS);
});
base.map.on("click", (/** @type {any} */ event) => {
    if (tools.tool !== "") void tools.use(event.lngLat);
    else chooseAt(event.point);
});
new ResizeObserver(() => {
    // Drawn at once: a canvas is empty after a change of its size, and is shown before the next frame.
    points.resize();
    draw();
    showScale();
}).observe(byId("points"));

function settle() {
    showScale();
    const { lng, lat } = base.map.getCenter();
    place.view = [lng, lat, base.map.getZoom()];
    writeAddress(place);
    if (!isRecorded()) watchView();
}

function showScale() {
    const { lat, scale } = base.view();
    const metres = SCALE_PX / (metre(lat) * scale);
    const power = 10 ** Math.floor(Math.log10(metres));
    const round = [5, 2, 1].map((step) => step * power).find((one) => one <= metres) ?? power;
    const bar = byId("scale");
    bar.textContent = distance(round);
    bar.style.width = `${(round / metres) * SCALE_PX}px`;
}

/** Show an area, unless the address has a view. @param {Bounds} bounds */
function showArea(bounds) {
    area = bounds;
    if (isViewKnown) return;
    isViewKnown = true;
    base.show(bounds);
}

let area = WORLD;
byId("zoom-in").addEventListener("click", () => base.map.zoomIn());
byId("zoom-out").addEventListener("click", () => base.map.zoomOut());
byId("zoom-all").addEventListener("click", () => base.show(area));

// The server.

function watchView() {
    const view = isViewKnown ? base.bounds() : WORLD;
    watch.want({ view, keyword: place.keyword, deviceId: place.device });
}

watch.onState = (state, text) => {
    const chip = byId("connection");
    chip.dataset.state = state === "token" ? "failed" : state;
    if (chip.textContent !== text) chip.textContent = text;
    byId("token-form").hidden = state !== "token";
};
watch.onFrame = (frame) => {
    if (frame.frame !== undefined) {
        const { lonMin, latMin, lonMax, latMax, lon0Deg, lat0Deg, xMPerDeg, yMPerDeg, maxdistM } = frame.frame;
        plane = { lon0_deg: lon0Deg, lat0_deg: lat0Deg, x_m_per_deg: xMPerDeg, y_m_per_deg: yMPerDeg, maxdist_m: maxdistM };
        showArea([lonMin, latMin, lonMax, latMax]);
    }
    figures.add(frame);
    isDirty = true;
};

// A page in the background is not watched.
document.addEventListener("visibilitychange", () => {
    if (isRecorded()) return;
    if (document.hidden) watch.stop();
    else watchView();
});

byId("token-form").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    keepToken(byId("token").value.trim());
    byId("token").value = "";
    void start();
});

// The chosen device.

/** @param {{x: number, y: number}} point */
function chooseAt({ x, y }) {
    const row = points.deviceAt(scene, base.view(), x, y);
    choose(row < 0 ? "" : scene.devices.ids[row]);
}

/** Choose a device; "" for none. @param {string} deviceId @param {boolean} [moves] whether to show its place */
function choose(deviceId, moves = false) {
    place.device = deviceId;
    isFocusDue = moves && deviceId !== "";
    scene.chosen = deviceId;
    subscriptionId = null;
    scene.release();
    byId("device").value = deviceId;
    byId("chosen").hidden = deviceId === "";
    writeAddress(place);
    isDirty = true;
    if (isRecorded()) showMoment();
    else {
        watchView();
        void inspectChosen();
    }
}

async function inspectChosen() {
    const deviceId = place.device;
    if (deviceId === "" || isRecorded() || plane === null || document.hidden) return;
    try {
        const found = await inspect(deviceId, subscriptionId, plane);
        if (place.device !== deviceId || isRecorded()) return;
        showDevice(byId("chosen"), found, { close, select }, tools.factsOf(deviceId));
        drawInspection(scene, found, plane);
        focusChosen();
    } catch (error) {
        if (place.device !== deviceId || isRecorded()) return;
        const text = error instanceof CallError ? error.message : String(error);
        showProblem(byId("chosen"), deviceId, text, close);
        scene.release();
    }
    isDirty = true;
}

/** Show the region and the result of a device that was chosen by its id, or of another subscription. */
function focusChosen() {
    const shapes = [...scene.regions, ...scene.ranges].flatMap((outline) => [...outline]);
    const xs = [...shapes.filter((_, i) => i % 2 === 0), ...scene.held.map(({ x }) => x)];
    const ys = [...shapes.filter((_, i) => i % 2 === 1), ...scene.held.map(({ y }) => y)];
    if (!isFocusDue || xs.length === 0) return;
    isFocusDue = false;
    const [west, north, east, south] = [Math.min(...xs), Math.min(...ys), Math.max(...xs), Math.max(...ys)];
    base.show([longitude(west), latitude(south), longitude(east), latitude(north)]);
}

function close() {
    choose("");
    byId("device").focus();
}

/** @param {number} chosen */
function select(chosen) {
    subscriptionId = chosen;
    isFocusDue = true;
    void inspectChosen();
}

async function keepInspecting() {
    await inspectChosen();
    setTimeout(keepInspecting, INSPECT_MS);
}

// Filters, layers and theme.

byId("device-form").addEventListener("submit", (/** @type {Event} */ event) => {
    event.preventDefault();
    choose(byId("device").value.trim(), true);
});
byId("keyword-form").addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
byId("keyword").addEventListener("change", () => filter(byId("keyword").value.trim()));

/** Show only objects with a keyword. @param {string} keyword */
function filter(keyword) {
    place.keyword = keyword;
    writeAddress(place);
    if (isRecorded()) showMoment();
    else watchView();
}

byId("layers").addEventListener("change", () => {
    /** @type {NodeListOf<HTMLInputElement>} */
    const boxes = byId("layers").querySelectorAll("input");
    place.hidden = [...boxes].filter((box) => !box.checked).map((box) => box.name);
    writeAddress(place);
    showLayers();
});

function showLayers() {
    for (const name of /** @type {const} */ (["devices", "objects", "true"])) {
        points.layers[name] = !place.hidden.includes(name);
    }
    base.showRoads(!place.hidden.includes("roads"));
    isDirty = true;
}

function recolour() {
    byId("theme").setAttribute("aria-pressed", String(theme() === "dark"));
    points.recolour();
    base.recolour();
    figures.recolour();
    isDirty = true;
}
byId("theme").addEventListener("click", () => {
    chooseTheme(theme() === "dark" ? "light" : "dark");
    recolour();
});
followSystem(recolour);

tools.onHint = (text) => {
    byId("hint").textContent = text;
    byId("hint").hidden = text === "";
};
tools.middle = () => base.map.getCenter();
tools.onDevice = (deviceId) => {
    if (place.device === deviceId) void inspectChosen();
    else choose(deviceId);
};
addEventListener("keydown", (event) => {
    if (event.key === "Escape" && tools.tool !== "") tools.choose("");
    else if (event.key === "/" && !(event.target instanceof HTMLInputElement)) {
        event.preventDefault();
        byId("device").focus();
    }
});

// Recorded runs.

function isRecorded() {
    return player.recording !== null;
}

/** @type {import("./recording.js").Recording | null} the run that can be shown */
let run = null;

/** Read roads, or a recorded run with roads. @param {ArrayBuffer} buffer */
function openBase(buffer) {
    if (new Uint8Array(buffer, 0, 1)[0] === 0x7b) {
        base.setGround(JSON.parse(new TextDecoder().decode(buffer)));
        return;
    }
    const recording = readRecording(buffer);
    base.setGround(roadsOf(recording), waterOf(recording));
    run = recording.hasRun ? recording : null;
    byId("recorded").hidden = run === null;
}

function showRun() {
    if (run === null) return;
    watch.stop();
    figures.open(run);
    scene.deviceGrid = scene.objectGrid = null;
    byId("true-layer").hidden = false;
    byId("token-form").hidden = true;
    byId("recorded").hidden = true;
    byId("connection").dataset.state = "recorded";
    byId("connection").textContent = `recorded: ${run.header.name || "a run"}`;
    showArea(run.header.area);
    player.open(run, (place.run ?? 0) * 1000);
}

function showLive() {
    player.open(null);
    place.run = null;
    byId("true-layer").hidden = true;
    byId("recorded").hidden = run === null;
    byId("connection").dataset.state = "waiting";
    byId("connection").textContent = "connecting";
    scene.devices.clear();
    scene.objects.clear();
    scene.release();
    figures.clear();
    writeAddress(place);
    choose(place.device);
}

function showMoment() {
    const { recording, timeMs } = player;
    if (recording === null) return;
    const objects = recording.fill(scene, timeMs, place.keyword);
    scene.release();
    place.run = timeMs / 1000;
    writeAddress(place);
    figures.showRecorded(recording, timeMs, scene.devices.count, objects);
    if (place.device !== "") {
        const found = inspectRecorded(recording, place.device, timeMs);
        showRecordedDevice(byId("chosen"), place.device, recording.deviceFigures(place.device, timeMs), found, close);
        if (found !== null) drawInspection(scene, found, recording.header.plane);
        focusChosen();
    }
    isDirty = true;
}

player.onChange = showMoment;
player.onLive = showLive;
byId("recorded").addEventListener("click", showRun);

byId("open").addEventListener("change", async () => {
    const [file] = byId("open").files;
    if (file === undefined) return;
    try {
        openBase(await file.arrayBuffer());
        tools.onHint("");
        isViewKnown = false;
        showRun();
    } catch (error) {
        tools.onHint(error instanceof Error ? error.message : String(error));
    }
});

/** Read the map file, if the token allows it; show the run of the address, or watch the server. */
async function start() {
    await loadBase().catch((error) => tools.onHint(`The map file cannot be read: ${error.message}`));
    if (run !== null && place.run !== null) showRun();
    else watchView();
}

async function loadBase() {
    const response = await fetch(new URL("base", import.meta.url), { headers: authorization() });
    if (response.status === 200) openBase(await response.arrayBuffer());
}

// Start.

function applyAddress() {
    byId("device").value = scene.chosen = place.device;
    byId("keyword").value = place.keyword;
    for (const box of byId("layers").querySelectorAll("input")) box.checked = !place.hidden.includes(box.name);
    if (place.view !== null) base.map.jumpTo({ center: [place.view[0], place.view[1]], zoom: place.view[2] });
    showLayers();
}

addEventListener("hashchange", () => {
    Object.assign(place, readAddress());
    applyAddress();
    if (isRecorded() && place.run !== null) player.seek(place.run * 1000);
    choose(place.device);
});

applyAddress();
recolour();
requestAnimationFrame(loop);
await start();
void keepInspecting();
