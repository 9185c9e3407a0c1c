/**
 * Distances on the ground, for display; see `safe_region/earth/ground.py`. They decide nothing about
 * results.
 */

import type { Frame } from "./frame.js";

const EQUATOR_RADIUS_M = 6378137;
const FLATTENING = 1 / 298.257223563;
const ANTIPODE_M = 20003931.46;
/** Mean radius of the Earth. */
const EARTH_RADIUS_M = 6371008.8;
const LONGITUDE_MAX_DEG = 180;
/** A degree of latitude is up to 0.56 % shorter on WGS84 than on the sphere. */
const ELLIPSOID = 0.994;
/** A degree of latitude or longitude is up to 0.45 % longer on WGS84 than on the sphere. */
const ELLIPSOID_MAX = 1.0045;
/** Larger radii are reduced to this one: the Earth is not a plane. Infinite radii stay infinite. */
const RADIUS_M_MAX = 100_000;

/** Metres of a degree of latitude on the sphere. */
export const M_PER_DEG = (EARTH_RADIUS_M * Math.PI) / 180;

/** Return an angle in radians. */
export function radians(degrees: number): number {
    return (degrees * Math.PI) / 180;
}

/** Return the length of the shortest path between two places on the ellipsoid, in metres, to 0.1 %. */
export function groundDistanceM(lon: number, lat: number, otherLon: number, otherLat: number): number {
    if (![otherLon - lon, lat, otherLat].every(Number.isFinite)) return NaN;
    const beta = reducedLatitude(lat);
    const otherBeta = reducedLatitude(otherLat);
    const sin2Q = Math.sin((otherBeta - beta) / 2) ** 2;
    const sin2P = Math.sin((otherBeta + beta) / 2) ** 2;
    const halfLon = radians(otherLon - lon) / 2;
    const sin2Lon = Math.sin(halfLon) ** 2;
    const cos2Lon = Math.cos(halfLon) ** 2;
    const sin2 = sin2Q + Math.cos(beta) * Math.cos(otherBeta) * sin2Lon;
    const cos2 = sin2P * sin2Lon + (1 - sin2Q) * cos2Lon;
    if (sin2 === 0) return 0;
    const angle = 2 * Math.atan2(Math.sqrt(sin2), Math.sqrt(cos2));
    const sine = 2 * Math.sqrt(sin2 * cos2);
    const across = cos2 > 0 ? (sin2P * (1 - sin2Q)) / cos2 : 0;
    const along = ((1 - sin2P) * sin2Q) / sin2;
    const correction = (angle - sine) * across + (angle + sine) * along;
    return Math.min(EQUATOR_RADIUS_M * (angle - (FLATTENING / 2) * correction), ANTIPODE_M);
}

/** Return the radius of a circle on the ground that lies within a circle on the plane. */
export function groundRadiusM(frame: Frame, lon: number, lat: number, radiusM: number): number {
    if (radiusM === Infinity) return radiusM;
    const edgeM = (LONGITUDE_MAX_DEG - Math.abs(lon)) * frame.xMPerDeg;
    const withinM = Math.min(radiusM, edgeM, RADIUS_M_MAX);
    const edgeDeg = Math.min(90, Math.abs(lat) + withinM / M_PER_DEG);
    const east = (M_PER_DEG * Math.cos(radians(edgeDeg))) / frame.xMPerDeg;
    return withinM * ELLIPSOID * Math.min(1, east);
}

/** Return the radius of a circle on the ground that contains a circle on the plane. */
export function groundExtentM(frame: Frame, lat: number, radiusM: number): number {
    const edgeDeg = Math.max(0, Math.abs(lat) - radiusM / M_PER_DEG);
    const east = (M_PER_DEG * Math.cos(radians(edgeDeg))) / frame.xMPerDeg;
    return radiusM * ELLIPSOID_MAX * Math.max(1, east);
}

function reducedLatitude(lat: number): number {
    return Math.atan((1 - FLATTENING) * Math.tan(radians(lat)));
}
