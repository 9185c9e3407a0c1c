/** The time after which a server counts as silent, in virtual time. */

import assert from "node:assert/strict";
import { test } from "node:test";
import type { TestContext } from "node:test";
import { ServerWatch } from "../src/transport/server_watch.js";

/** A watch in virtual time, and what it has reported. */
function watched(t: TestContext) {
    t.mock.timers.enable({ apis: ["setTimeout"] });
    let nowMs = 0;
    t.mock.method(performance, "now", () => nowMs);
    const state = { isDue: true, silences: [] as boolean[], losses: 0 };
    const watch = new ServerWatch(
        () => state.isDue,
        (isSilent) => state.silences.push(isSilent),
        () => (state.losses += 1),
    );
    t.after(() => watch.clear());
    /** `lateMs`: by how much timers are late. */
    const pass = (ms: number, lateMs = 0) => {
        nowMs += ms + lateMs;
        t.mock.timers.tick(ms);
    };
    return { watch, state, pass };
}

test("the wait for a response starts with its request, not with an earlier one", (t) => {
    const { watch, state, pass } = watched(t);
    watch.requested();
    pass(100);
    state.isDue = false;
    watch.arrived();
    watch.responded();
    pass(3800);
    state.isDue = true;
    watch.requested();
    pass(100); // the timer of the first request fires
    pass(3800);
    assert.deepEqual(state.silences, []);
    pass(100);
    assert.deepEqual(state.silences, [true]);
    watch.arrived();
    assert.deepEqual(state.silences, [true, false]);
});

test("a server that never responds is lost", (t) => {
    const { watch, state, pass } = watched(t);
    watch.requested();
    pass(4000);
    assert.deepEqual(state.silences, [true]);
    pass(14_900);
    assert.equal(state.losses, 0);
    pass(100);
    assert.equal(state.losses, 1);
});

test("a server that has responded is lost later: a large message may be on its way", (t) => {
    const { watch, state, pass } = watched(t);
    watch.requested();
    pass(4000);
    pass(14_000);
    watch.arrived(); // it is silent anew four seconds later
    pass(3900);
    assert.deepEqual(state.silences, [true, false]);
    pass(100);
    assert.deepEqual(state.silences, [true, false, true]);
    pass(70_900);
    assert.equal(state.losses, 0);
    pass(100);
    assert.equal(state.losses, 1);
});

test("a server is not lost while its app sleeps", (t) => {
    const { watch, state, pass } = watched(t);
    watch.requested();
    pass(4000);
    pass(15_000, 60_000);
    assert.equal(state.losses, 0);
    pass(19_000);
    assert.equal(state.losses, 1);
});

test("a request to a silent server starts the wait anew if none was due", (t) => {
    const { watch, state, pass } = watched(t);
    watch.requested();
    pass(4000);
    state.isDue = false;
    pass(15_000);
    assert.equal(state.losses, 0);
    state.isDue = true;
    watch.requested();
    pass(4000);
    pass(14_900);
    assert.equal(state.losses, 0);
    pass(100);
    assert.equal(state.losses, 1);
});
