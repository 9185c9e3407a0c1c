/** Web Mercator, normalised: the world is the square from (0, 0), north-west, to (1, 1). */

const RAD = Math.PI / 180;

/** @param {number} lon */
export function mercatorX(lon) {
    return (lon + 180) / 360;
}

/** @param {number} lat */
export function mercatorY(lat) {
    return 0.5 - Math.log(Math.tan(Math.PI / 4 + (lat * RAD) / 2)) / (2 * Math.PI);
}

/** Return the width of a metre of ground, as a part of the world. @param {number} lat */
export function metre(lat) {
    return 1 / (40_075_016.686 * Math.cos(lat * RAD));
}

/** @param {number} x */
export function longitude(x) {
    return x * 360 - 180;
}

/** @param {number} y */
export function latitude(y) {
    return (2 * Math.atan(Math.exp((0.5 - y) * 2 * Math.PI)) - Math.PI / 2) / RAD;
}
