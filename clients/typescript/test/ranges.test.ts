/** Positions and rings in ranges of specs, and in areas of objects. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Polygon, Position } from "../src/index.js";
import { isSameSpec, writeSpec } from "../src/core/specs.js";
import type { BooleanSpec, Range } from "../src/core/specs.js";
import { writeObject } from "../src/publishing.js";

const at = (lon: number, lat: number): Position => ({ lon, lat });
const OUTER = [at(14.1, 35.1), at(14.4, 35.1), at(14.4, 35.4)];
const HOLE = [at(14.3, 35.15), at(14.35, 35.15), at(14.35, 35.2)];

const closed = (ring: Position[]): Position[] => [...ring, ...ring.slice(0, 1)];
const within = (range: Range): BooleanSpec => ({ kind: "boolean", expression: "tea", range });
const polygon = (outer: Position[], ...holes: Position[][]): Polygon => ({ kind: "polygon", outer, holes });

test("a ring that repeats its first corner is the same as one that does not", () => {
    const open = within(polygon(OUTER, HOLE));
    const repeated = within(polygon(closed(OUTER), closed(HOLE)));
    assert.ok(isSameSpec(open, repeated));
    assert.deepEqual(writeSpec(repeated), writeSpec(open));
});

test("an area that repeats its first corner", () => {
    const published = (outer: Position[]) => {
        const area = { kind: "polygon", outer } as const;
        return writeObject({ keywords: ["tea"], area, ttlMs: 1000 }, "objects[0]");
    };
    assert.deepEqual(published(closed(OUTER)), published(OUTER));
});

for (const [range, field] of [
    [polygon([at(14.1, 35.1), {} as Position]), "outer[1].lon"],
    [polygon(OUTER, [at(14.3, NaN)]), "holes[0][0].lat"],
    [polygon([[14.1, 35.1] as unknown as Position]), "outer[0]"],
    [polygon(at(14.1, 35.1) as unknown as Position[]), "outer"],
    [polygon(OUTER, at(14.1, 35.1) as unknown as Position[]), "holes[0]"],
    [{ kind: "circle", radiusM: 10, center: [14.1, 35.1] as unknown as Position }, "center"],
    [{ kind: "circle", radiusM: 10, center: { lat: 35.1 } as Position }, "center.lon"],
    [{ kind: "bounds", lonMin: 14, latMin: 35, lonMax: 15, latMax: NaN }, "latMax"],
] as [Range, string][]) {
    test(`an error names the element: ${field}`, () => {
        assert.throws(() => writeSpec(within(range)), { field: `spec.boolean.range.${field}` });
        if (range.kind === "circle" || (range.kind === "polygon" && field.startsWith("holes"))) return;
        const area = range.kind === "polygon" ? { kind: range.kind, outer: range.outer } : range;
        const object = { keywords: ["tea"], area, ttlMs: 1000 } as Parameters<typeof writeObject>[0];
        assert.throws(() => writeObject(object, "objects[0]"), { field: `objects[0].area.${field}` });
    });
}
