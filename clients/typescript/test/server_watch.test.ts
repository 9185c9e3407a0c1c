/** The time after which a server counts as silent, in virtual time. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { ServerWatch } from "../src/transport/server_watch.js";

test("the wait for a response starts with its request, not with an earlier one", (t) => {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    let nowMs = 0;
    t.mock.method(performance, "now", () => nowMs);
    const pass = (ms: number) => {
        nowMs += ms;
        t.mock.timers.tick(ms);
    };
    let isDue = true;
    const silences: boolean[] = [];
    const watch = new ServerWatch(
        () => isDue,
        (isSilent) => silences.push(isSilent),
    );
    watch.requested();
    pass(100);
    isDue = false;
    watch.arrived();
    watch.responded();
    pass(3800);
    isDue = true;
    watch.requested();
    pass(100); // the timer of the first request fires
    pass(3800);
    assert.deepEqual(silences, []);
    pass(100);
    assert.deepEqual(silences, [true]);
    watch.arrived();
    assert.deepEqual(silences, [true, false]);
    watch.clear();
});
