/** The base map: roads on plain ground, drawn by MapLibre, which also moves the view. */

import { Map as MapLibre, setWorkerUrl } from "./vendor/maplibre-gl.mjs";
import { colour } from "./colours.js";
import { mercatorX, mercatorY } from "./mercator.js";

/** @typedef {import("./points.js").View} View */
/** @typedef {[number, number, number, number]} Bounds west, south, east, north */

setWorkerUrl(new URL("./vendor/maplibre-gl-worker.mjs", import.meta.url).href);

/** Pixels of the world at zoom 0. */
const WORLD_PX = 512;
/** Widths of roads in pixels at zooms 11 and 17, by class. */
const WIDTHS = /** @type {Record<string, [number, number]>} */ ({
    motorway: [1.8, 9], primary: [1.5, 8], secondary: [1.1, 6.5], tertiary: [0.8, 5],
});
const WIDTH = /** @type {[number, number]} */ ([0.5, 3.5]);

export class BaseMap {
    map;
    #isLoaded = false;

    /** @param {HTMLElement} container */
    constructor(container) {
        this.map = new MapLibre({
            container,
            style: style(),
            center: [0, 0],
            zoom: 1,
            attributionControl: false,
            dragRotate: false,
            pitchWithRotate: false,
            touchPitch: false,
            renderWorldCopies: false,
            fadeDuration: 0,
            maxZoom: 20,
        });
        this.map.once("load", () => (this.#isLoaded = true));
        this.map.touchZoomRotate.disableRotation();
        this.map.keyboard.disableRotation();
    }

    /** @returns {View} */
    view() {
        const { lng, lat } = this.map.getCenter();
        return {
            x: mercatorX(lng),
            y: mercatorY(lat),
            scale: WORLD_PX * 2 ** this.map.getZoom(),
            lat,
        };
    }

    /** The visible rectangle in degrees. @returns {Bounds} */
    bounds() {
        const box = this.map.getBounds();
        return [box.getWest(), box.getSouth(), box.getEast(), box.getNorth()];
    }

    /** @param {Bounds} bounds */
    show([west, south, east, north]) {
        this.map.fitBounds([[west, south], [east, north]], { padding: 24, animate: false });
    }

    /** Take the colours of the theme. */
    recolour() {
        this.#whenLoaded(() => {
            this.map.setPaintProperty("ground", "background-color", colour("ground"));
            this.map.setPaintProperty("water", "fill-color", colour("water"));
            for (const { id } of roadLayers()) this.map.setPaintProperty(id, "line-color", roadColour(id));
        });
    }

    /** Draw the lines of a GeoJSON document as roads, and rings as water. @param {object} roads @param {number[][][]} water */
    setGround(roads, water = []) {
        this.#whenLoaded(() => {
            this.map.getSource("roads").setData(roads);
            this.map.getSource("water").setData(polygons(water));
        });
    }

    /** @param {boolean} isShown */
    showRoads(isShown) {
        this.#whenLoaded(() => {
            for (const { id } of roadLayers()) {
                this.map.setLayoutProperty(id, "visibility", isShown ? "visible" : "none");
            }
        });
    }

    /** @param {() => void} change */
    #whenLoaded(change) {
        if (this.#isLoaded) change();
        else this.map.once("load", change);
    }
}

/** @param {string} id */
function roadColour(id) {
    return colour(id === "roads-small" ? "road" : "road-large");
}

function roadLayers() {
    const large = Object.keys(WIDTHS);
    const kind = ["coalesce", ["get", "road_class"], ["get", "highway"], ""];
    const isLarge = ["in", kind, ["literal", large]];
    return [
        line("roads-small", ["!", isLarge], WIDTH),
        ...large.toReversed().map((name) => line(`roads-${name}`, ["==", kind, name], WIDTHS[name])),
    ];
}

/** @param {string} id @param {unknown} filter @param {[number, number]} width */
function line(id, filter, [far, near]) {
    return {
        id,
        type: "line",
        source: "roads",
        filter,
        layout: { "line-cap": "round", "line-join": "round" },
        paint: {
            "line-color": roadColour(id),
            "line-width": ["interpolate", ["exponential", 1.6], ["zoom"], 11, far, 17, near],
        },
    };
}

function style() {
    return {
        version: 8,
        sources: {
            roads: { type: "geojson", data: polygons([]) },
            water: { type: "geojson", data: polygons([]) },
        },
        layers: [
            { id: "ground", type: "background", paint: { "background-color": colour("ground") } },
            { id: "water", type: "fill", source: "water", paint: { "fill-color": colour("water") } },
            ...roadLayers(),
        ],
    };
}

/** @param {number[][][]} rings */
function polygons(rings) {
    const features = rings.map((ring) => ({
        type: "Feature",
        properties: {},
        geometry: { type: "Polygon", coordinates: [ring] },
    }));
    return { type: "FeatureCollection", features };
}
