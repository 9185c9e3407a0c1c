/** The SDK passes the golden vectors of `proto/vectors`. */

import assert from "node:assert/strict";
import { readFileSync, readdirSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import type { Json, Vectors } from "./notation.js";
import { PLAYERS } from "./players.js";

const FOLDER = fileURLToPath(new URL("../../../../proto/vectors/", import.meta.url));

const files = readdirSync(FOLDER).filter((name) => name.endsWith(".json"));

test("every file has a player", () => {
    assert.deepEqual(files.map((name) => name.slice(0, -5)).sort(), Object.keys(PLAYERS).sort());
});

for (const name of files) {
    const vectors = JSON.parse(readFileSync(`${FOLDER}${name}`, "utf8")) as Vectors;
    for (const { name: caseName, given, steps } of vectors.cases) {
        test(`${vectors.subject}: ${caseName}`, () => {
            const play = PLAYERS[vectors.subject]?.(given);
            assert.ok(play);
            steps.forEach((step, number) => {
                const { expected, ...input } = step;
                const found = play(input);
                const message = `step ${number}: ${JSON.stringify(input)}`;
                if (vectors.relative_error === 0) assertSame(found, expected as Json, message);
                else assertClose(found, expected as Json, vectors.relative_error, message);
            });
        });
    }
}

/** Doubles are compared by their bits, as Object.is does. */
function assertSame(found: Json, expected: Json, message: string): void {
    try {
        assert.deepStrictEqual(found, expected);
    } catch (error) {
        throw new Error(`${message}\n${(error as Error).message}`);
    }
}

function assertClose(found: Json, expected: Json, relativeError: number, message: string): void {
    if (typeof found === "number" && typeof expected === "number") {
        assert.ok(
            Math.abs(found - expected) <= Math.max(relativeError * Math.abs(expected), 1e-9),
            message,
        );
    } else if (
        typeof found === "object" &&
        typeof expected === "object" &&
        found !== null &&
        expected !== null
    ) {
        assert.deepEqual(Object.keys(found), Object.keys(expected), message);
        for (const [key, one] of Object.entries(found)) {
            assertClose(one, (expected as Record<string, Json>)[key] as Json, relativeError, message);
        }
    } else {
        assert.strictEqual(found, expected, message);
    }
}
