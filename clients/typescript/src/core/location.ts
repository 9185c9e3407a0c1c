/**
 * The position of a device, and the position that it sends to the server. See
 * `nearcast/protocol/location.py`.
 */

import { invalid } from "./errors.js";
import type { Frame, Point } from "./frame.js";
import { M_PER_DEG, radians } from "./ground.js";
import { finite, notNegative } from "./numbers.js";
import { length } from "./scoring.js";

const LON_MAX_DEG = 180;
const LAT_MAX_DEG = 90;
/** Keeps a point at the rim within the radius when its degrees are rounded. */
const INWARD = 1 - 1e-6;
/** Lower bound of the cosine of the latitude: near a pole a metre is arbitrarily many degrees. */
const COS_MIN = 1e-6;

/** A position as the device sends it to the server. */
export interface SharedLocation {
    readonly lon: number;
    readonly lat: number;
    /** The device is within this distance of it. */
    readonly marginM: number;
    /** Part of the margin that comes from the accuracy of the fix, not from the blur. */
    readonly accuracyM: number;
}

/** A fix: degrees, and its accuracy in metres, 0 by default. */
export interface Fix {
    readonly lon: number;
    readonly lat: number;
    readonly accuracyM?: number | undefined;
}

/** The true position of a device. The device sends only the result of `shared`. */
export class Location {
    lon = 0;
    lat = 0;
    accuracyM = 0;
    /** Largest distance of a blurred position from the true one; 0 for a device that is not private. */
    readonly privacyRadiusM: number;
    readonly #random: () => number;
    #blurred: { lon: number; lat: number } | undefined;

    constructor(fix: Fix, privacyRadiusM = 0, random: () => number = secureRandom) {
        this.privacyRadiusM = notNegative(privacyRadiusM, "privacyRadiusM");
        this.#random = random;
        this.move(fix);
    }

    /** Whether the device sends blurred positions only. */
    get isPrivate(): boolean {
        return this.privacyRadiusM > 0;
    }

    /** Whether the device sends its exact position. */
    get isExact(): boolean {
        return this.privacyRadiusM + this.accuracyM === 0;
    }

    /** Set a new fix. If a number is out of its limits, the old fix is kept. */
    move({ lon, lat, accuracyM = 0 }: Fix): void {
        degrees(lon, "position.lon", LON_MAX_DEG);
        degrees(lat, "position.lat", LAT_MAX_DEG);
        this.accuracyM = notNegative(accuracyM, "accuracyM");
        this.lon = lon;
        this.lat = lat;
    }

    /** Return the true position on the plane. */
    project(frame: Frame): Point {
        return frame.project(this.lon, this.lat);
    }

    /** Return the position to send now; draw another blurred position if the last one is too far. */
    shared(frame: Frame): SharedLocation {
        const { lon, lat, accuracyM } = this;
        if (!this.isPrivate) return { lon, lat, marginM: accuracyM, accuracyM };
        if (this.#blurred === undefined || this.#isFar(frame, this.#blurred))
            this.#blurred = this.#drawn(frame);
        return { ...this.#blurred, marginM: this.privacyRadiusM + accuracyM, accuracyM };
    }

    /** Return whether the device would send the same position again. */
    isStill(frame: Frame, sent: SharedLocation): boolean {
        const shown = this.isPrivate ? this.#blurred : this;
        if (shown === undefined || shown.lon !== sent.lon || shown.lat !== sent.lat) return false;
        return !this.isPrivate || !this.#isFar(frame, sent);
    }

    /** Return the distance of the device from a position that it has sent. */
    distanceM(frame: Frame, sent: { lon: number; lat: number }): number {
        const [xScale, yScale] = this.#metresPerDegree(frame);
        return length((sent.lon - this.lon) * xScale, (sent.lat - this.lat) * yScale, 0);
    }

    #isFar(frame: Frame, sent: { lon: number; lat: number }): boolean {
        return this.distanceM(frame, sent) > this.privacyRadiusM;
    }

    /** Draw a point uniformly from the disc. */
    #drawn(frame: Frame): { lon: number; lat: number } {
        const [xScale, yScale] = this.#metresPerDegree(frame);
        const radiusM = this.privacyRadiusM * INWARD * Math.sqrt(this.#random());
        const angle = 2 * Math.PI * this.#random();
        const lon = this.lon + (radiusM * Math.cos(angle)) / xScale;
        const lat = this.lat + (radiusM * Math.sin(angle)) / yScale;
        return { lon: clipped(lon, LON_MAX_DEG), lat: clipped(lat, LAT_MAX_DEG) };
    }

    /** Return the factors of the frame; before the first welcome, the factors at the position. */
    #metresPerDegree(frame: Frame): [number, number] {
        if (frame.xMPerDeg > 0) return [frame.xMPerDeg, frame.yMPerDeg];
        return [M_PER_DEG * Math.max(COS_MIN, Math.cos(radians(this.lat))), M_PER_DEG];
    }
}

/** Return a number from [0, 1) of the platform's secure generator. */
function secureRandom(): number {
    return (crypto.getRandomValues(new Uint32Array(1))[0] ?? 0) / 2 ** 32;
}

function clipped(value: number, most: number): number {
    return Math.min(most, Math.max(-most, value));
}

function degrees(value: number, field: string, most: number): void {
    if (Math.abs(finite(value, field)) > most) {
        throw invalid(field, value, `a finite number from -${most} to ${most}`);
    }
}
