/** Roads and water of a recorded run. */

import { E7 } from "./recorded_file.js";

/** @typedef {import("./recording.js").Recording} Recording */

const OUT_OF_SIGHT_DEG = 1;

/** Roads as GeoJSON, one feature for each class. @param {Recording} recording */
export function roadsOf({ header, columns }) {
    const { road_class, road_lon1, road_lat1, road_lon2, road_lat2 } = columns;
    const features = header.road_classes.map((name) => ({
        type: "Feature",
        properties: { road_class: name },
        geometry: { type: "MultiLineString", coordinates: /** @type {number[][][]} */ ([]) },
    }));
    for (let i = 0; i < road_class.length; i++) {
        features[road_class[i]].geometry.coordinates.push([
            [road_lon1[i] * E7, road_lat1[i] * E7],
            [road_lon2[i] * E7, road_lat2[i] * E7],
        ]);
    }
    return { type: "FeatureCollection", features };
}

/**
 * Rings of lakes and of the sea. The simulator cuts the sea off at a rectangle: its straight edges are
 * moved out of sight.
 * @param {Recording} recording
 */
export function waterOf({ header }) {
    return header.water.map((ring) => {
        const edges = [0, 1].map((axis) => ring.map((place) => place[axis]));
        return ring.map((place) => place.map((value, axis) => beyond(value, edges[axis])));
    });
}

/** Move a coordinate out of sight that several corners of a ring have as their extreme. @param {number} value @param {number[]} all */
function beyond(value, all) {
    const isEdge = all.slice(1).filter((one) => one === value).length > 1;
    if (isEdge && value === Math.min(...all)) return value - OUT_OF_SIGHT_DEG;
    return isEdge && value === Math.max(...all) ? value + OUT_OF_SIGHT_DEG : value;
}
