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
        if (!this.map.isStyleLoaded()) {
            this.map.once("styledata", () => this.recolour());
            return;
        }
        this.map.setPaintProperty("ground", "background-color", colour("ground"));
        for (const { id } of roadLayers()) this.map.setPaintProperty(id, "line-color", roadColour(id));
    }

    /** Draw the roads of a GeoJSON document. @param {object} roads */
    setRoads(roads) {
        const set = () => this.map.getSource("roads")?.setData(roads);
        if (this.map.isStyleLoaded()) set();
        else this.map.once("load", set);
    }

    /** @param {boolean} isShown */
    showRoads(isShown) {
        const set = () => {
            for (const { id } of roadLayers()) {
                this.map.setLayoutProperty(id, "visibility", isShown ? "visible" : "none");
            }
        };
        if (this.map.isStyleLoaded()) set();
        else this.map.once("load", set);
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
        sources: { roads: { type: "geojson", data: { type: "FeatureCollection", features: [] } } },
        layers: [
            { id: "ground", type: "background", paint: { "background-color": colour("ground") } },
            ...roadLayers(),
        ],
    };
}
