/** Decides when the device has to report for a subscription. See `nearcast/protocol/report_policy.py`. */

import type { Frame, Point } from "./frame.js";
import type { Location, SharedLocation } from "./location.js";
import { inscribedRadiusM } from "./region.js";
import type { Evaluation, Region } from "./region.js";

/** Shrinks the circle of silence by more than its rounding error. */
const RADIUS_SAFETY = 1 - 1e-9;

/** A circle within which no test is needed, for fixes that are at least as accurate. */
interface Quiet {
    readonly at: Point;
    readonly radiusM: number;
    readonly accuracyM: number;
}

const NOWHERE: Quiet = { at: { xM: NaN, yM: NaN }, radiusM: 0, accuracyM: 0 };

/** Decides for one subscription whether the device reports. */
export class ReportPolicy {
    #earlyM = 0;
    /** Whether the region did not cover the margin of the position that was sent. */
    #isUncovered = false;
    #quiet = NOWHERE;

    constructor(
        readonly region: Region,
        readonly prefetchM: number,
        private sent?: SharedLocation | undefined,
    ) {}

    /** Record the position that the device sent for this subscription. */
    markSent(shared: SharedLocation): void {
        this.sent = shared;
    }

    /** Record the server's response to that position. */
    answered(frame: Frame, evaluate: () => Evaluation, timeMs: number): void {
        this.anchored(evaluate);
        const { sent } = this;
        if (sent === undefined || sent.marginM === 0) return;
        const at = frame.project(sent.lon, sent.lat);
        if (!this.region.evaluate(at.xM, at.yM, timeMs, sent.marginM).exact) {
            this.#isUncovered = true;
            this.#earlyM = 0;
        }
    }

    /** Record that the region has changed. A small region is left early by half of it at most. */
    anchored(evaluate: () => Evaluation): void {
        this.#isUncovered = false;
        if (this.prefetchM > 0) this.#earlyM = Math.min(this.prefetchM, inscribedRadiusM(evaluate()) / 2);
    }

    /** Record that the buffer or the reach has changed. */
    changed(): void {
        this.#quiet = NOWHERE;
    }

    /** Return whether an earlier decision already rules out a report from this point. */
    isQuiet(point: Point, accuracyM: number): boolean {
        const { at, radiusM, accuracyM: mostM } = this.#quiet;
        const dx = point.xM - at.xM;
        const dy = point.yM - at.yM;
        return dx * dx + dy * dy < radiusM * radiusM && accuracyM <= mostM;
    }

    /** Return whether the device must report at this point, given the evaluation of its region. */
    mustReport(frame: Frame, location: Location, point: Point, evaluation: Evaluation): boolean {
        this.#quiet = { at: point, radiusM: this.radiusM(evaluation), accuracyM: location.accuracyM };
        if (!(evaluation.exact || evaluation.isCapped || evaluation.isDue)) {
            return !this.isTooVague(frame, location, evaluation);
        }
        const isEarly = inscribedRadiusM(evaluation) < this.#earlyM;
        return isEarly && (this.sent === undefined || !location.isStill(frame, this.sent));
    }

    /** Return whether a report would be useless, although the region does not cover the device. */
    isTooVague(frame: Frame, location: Location, evaluation: Evaluation): boolean {
        const { sent } = this;
        return (
            this.#isUncovered &&
            sent !== undefined &&
            !evaluation.isLacking &&
            location.accuracyM >= sent.accuracyM &&
            location.distanceM(frame, sent) <= sent.marginM
        );
    }

    /** Return `radiusM`; for a position that is too vague, at least the rest of its margin. */
    fenceM(frame: Frame, location: Location, evaluation: Evaluation): number {
        const radiusM = this.radiusM(evaluation);
        if (this.sent === undefined || !this.isTooVague(frame, location, evaluation)) return radiusM;
        return Math.max(radiusM, this.sent.marginM - location.distanceM(frame, this.sent));
    }

    /** Return the radius of a circle about the evaluated position that needs no report. */
    radiusM(evaluation: Evaluation): number {
        return Math.max(0, inscribedRadiusM(evaluation) * RADIUS_SAFETY - this.#earlyM);
    }
}
