"""Sessions, message by message: what the rules of docs/protocol.md mean for a device."""

from __future__ import annotations

import math

from tests.vectors.frames import CONTINENT
from tests.vectors.sessions.messages import (
    CONNECT,
    DISCONNECT,
    EPOCH,
    FIXED,
    HERE,
    NEAR,
    NOW_MS,
    PASS_TIME,
    TEA,
    delta,
    detached,
    entry,
    given,
    move,
    pong,
    reach,
    receive,
    rejection,
    slack,
    snapshot,
    subscribe,
    welcome,
)


def cases():
    for name, steps in {
        "a first result, and silence": _first(),
        "deltas that are repeated": _repeated(),
        "a delta that is lost": _lost(),
        "a snapshot that skips versions": _coalesced(),
        "resumed after a broken stream": _resumed(),
        "another epoch": _epochs(),
        "a server that has lost the subscription": _restart(),
        "reports that cross deltas": _crossing(),
        "objects that expire": _expiry(),
        "a reused id": _reused(),
        "acknowledgements": _acks(),
        "an end": _ends(),
        "an end that the server refuses": _refused_end(),
        "a subscription that the server refuses": _refused_subscribe(),
        "a report that the server refuses": _refused_report(),
        "subscriptions of another instance": _adopted(),
        "subscriptions of an unknown kind": _unknown_kinds(),
        "names": _names(),
        "a change of spec": _change(),
        "a change of spec that the server refuses": _refused_change(),
        "a change of spec that is coalesced": _held_change(),
        "a change of spec that is lost with its stream": _lost_change(),
        "a change of spec without a stream": _offline_change(),
        "moves to another server": _moved(),
        "taken over": [*_online(TEA), detached("SUPERSEDED"), CONNECT, move(14.6)],
        "forgotten": [*_online(TEA), detached("FORGOTTEN")],
        "a hello that is refused": [
            CONNECT,
            rejection("HELLO", 0, "DEVICE_IN_USE", retry_after_ms="9000"),
        ],
        "served by another server": _elsewhere(),
        "a server that lags": _lagging(),
        "silent and leased out": _leases(),
        "the position that the server requests": _locate(),
        "fixes that are poor": _poor(),
        "a fix that is too poor": _too_vague(),
        "a fix that is too poor, and too few objects": _vague_and_lacking(),
        "ranges that move": _ranges(),
        "too many matches": _too_many(),
        "areas in a range that moves": _areas(),
        "a fixed range": _fixed(),
        "windows": _windows(),
        "dwell times": _dwell(),
        "a stationary subscription": _stationary(),
        "a server that does not respond": _unresponsive(),
        "events of a newer server": [*_online(TEA), receive(), move(14.5001)],
        "values that are refused": _bad_values(),
    }.items():
        yield {"name": name, "given": given(), "steps": steps}
    yield {"name": "take over", "given": given(take_over=True), "steps": _take_over()}
    yield {"name": "reports before the edge", "given": given(prefetch_m=200.0), "steps": _prefetch()}
    yield {"name": "a frame as wide as a continent", "given": given(), "steps": _continent()}
    yield {"name": "real time", "given": given(), "steps": _real_time()}


def next_fix_cases():
    """Make sessions of which the time to the next fix is of interest."""
    for name, steps in {
        "in virtual time": _moved_after_welcome(_expiry()),
        "before and after a report": [*_first(), DISCONNECT],
        "until a dwell time ends": _dwell(),
        "until an object leaves a window": _moved_after_welcome(_windows()),
        "anywhere": _fixed(),
        "a fix that is too poor": _too_vague(),
        "in real time": _ageing(),
    }.items():
        yield {"name": name, "given": given(), "steps": steps}


def _moved_after_welcome(steps):
    """Insert a fix after the welcome, which is the third step: earlier fixes are of real time."""
    return [*steps[:3], move(*HERE), *steps[3:]]


def _ageing():
    """A fix that grows old; a fix that is new; and an object that ends before either."""
    add = [entry(1, 14.501, expiry_ms=NOW_MS + 40_000), entry(2, 14.503), entry(3, 14.51)]
    steps = [subscribe(TEA), CONNECT, welcome(virtual_time=False)]
    steps.append(snapshot(1, add=add, reach=reach(2000.0)))
    steps += [{**PASS_TIME, "steady_ms": str(50_000 + age_ms)} for age_ms in (0, 1, 10_000, 24_000)]
    steps.append({**move(14.5001), "steady_ms": "75000"})
    steps += [{**PASS_TIME, "steady_ms": str(ms)} for ms in (80_000, 89_999, 90_000, 120_000)]
    return [*steps, {**move(14.5), "steady_ms": "121000"}, {**move(14.6), "steady_ms": "122000"}]


def _online(spec=TEA, bound=None, add=None, name=""):
    """Subscribe before the first stream, and get a first result."""
    add = [entry(1, 14.501), entry(2, 14.503), entry(3, 14.51)] if add is None else add
    bound = bound or {"reach": reach(2000.0, 9)}
    return [
        subscribe(spec, name),
        CONNECT,
        welcome(),
        snapshot(1, add=add, **bound),
    ]


def _first():
    steps = [CONNECT, welcome(), subscribe(TEA)]
    steps.append(snapshot(1, add=[entry(2, 14.503, r_m=10.0), entry(1, 14.501)], reach=reach(1500.0, 7)))
    steps += [move(14.5005), move(14.502), move(14.506), move(14.51)]
    answer = [entry(8, 14.5101), entry(9, 14.511)]
    steps.append(delta(2, at=(14.51, 35.5), add=answer, reach=reach(1200.0, 4), report_sequence="1"))
    steps.append(
        delta(3, cause="PUBLISHED", at=(14.51, 35.5), add=[entry(10, 14.51)], reach=reach(1200.0))
    )
    return [
        *steps,
        delta(4, cause="RETRACTED", at=(14.51, 35.5), drop=[(10, "RETRACTED")], reach=reach(900.0)),
    ]


def _repeated():
    added = delta(2, cause="PUBLISHED", add=[entry(4, 14.5)], reach=reach(2000.0, 9))
    dropped = delta(
        3, cause="REPLACED", drop=[(4, "REPLACED"), (77, "RETRACTED")], reach=reach(2000.0, 9)
    )
    return [*_online(), added, added, dropped, added, dropped, move(14.5001)]


def _lost():
    lost = delta(3, cause="PUBLISHED", add=[entry(4, 14.5)], reach=reach(2000.0, 9))
    steps = [*_online(), lost, DISCONNECT, CONNECT, welcome(3, [(1, TEA)], resumed=True)]
    between = delta(2, cause="PUBLISHED", add=[entry(5, 14.502)], reach=reach(2000.0, 9))
    return [*steps, between, lost, move(14.5)]


def _coalesced():
    return [
        *_online(),
        snapshot(40, cause="RESUMED", add=[entry(50, 14.5), entry(1, 14.501)], reach=reach(3000.0)),
        delta(41, cause="PUBLISHED", add=[entry(51, 14.5)], reach=reach(3000.0)),
        delta(43, cause="PUBLISHED", add=[entry(53, 14.5)], reach=reach(3000.0)),
    ]


def _resumed():
    steps = [*_online(), DISCONNECT, move(14.502), move(14.53), move(14.5), PASS_TIME, CONNECT]
    steps.append(welcome(3, [(1, TEA)], resumed=True))
    steps.append(delta(2, cause="PUBLISHED", add=[entry(4, 14.5)], reach=reach(2000.0, 9)))
    steps.append(move(14.53))
    steps.append(delta(3, cause="RETRACTED", drop=[(1, "RETRACTED")], reach=reach(2000.0, 9)))
    return [*steps, delta(4, at=(14.53, 35.5), reach=reach(math.inf), report_sequence="1")]


def _epochs():
    steps = [*_online(), DISCONNECT, CONNECT, welcome(2, [(1, TEA)], epoch=EPOCH + 1)]
    steps += [snapshot(2, cause="RESUMED", add=[entry(5, 14.5)], reach=reach(1.0)), move(14.501)]
    steps += [DISCONNECT, CONNECT, welcome(3, [(1, TEA)], epoch=7)]
    return [
        *steps,
        snapshot(3, cause="RESUMED", add=[entry(6, 14.52)], reach=reach(math.inf)),
        move(14.9),
    ]


def _restart():
    """A server that was restored from a backup: no delta follows its welcome."""
    steps = [*_online()]
    steps += [delta(one, cause="PUBLISHED", reach=reach(2000.0)) for one in (2, 3, 4)]
    steps += [DISCONNECT, CONNECT, welcome(9, [], epoch=5)]
    return [
        *steps,
        snapshot(10, add=[entry(1, 14.5)], reach=reach(math.inf)),
        delta(11, reach=reach(math.inf)),
    ]


def _crossing():
    away = (14.52, 35.5)
    return [
        *_online(),
        move(away[0]),
        delta(2, cause="PUBLISHED", add=[entry(4, 14.5)], reach=reach(2000.0)),
        move(14.53),
        delta(
            3, at=away, add=[entry(5, 14.521), entry(6, 14.522)], reach=reach(900.0), report_sequence="1"
        ),
        delta(4, at=(14.53, 35.5), add=[entry(7, 14.5301)], reach=reach(5000.0), report_sequence="2"),
        delta(5, cause="PUBLISHED", at=(14.53, 35.5), reach=reach(5000.0), report_sequence="2"),
    ]


def _expiry():
    add = [
        entry(1, 14.501, expiry_ms=NOW_MS + 100),
        entry(2, 14.503, expiry_ms=NOW_MS + 200),
        entry(3, 14.51, expiry_ms=NOW_MS + 200),
    ]
    steps = _online(add=add)
    steps.append(delta(2, cause="PUBLISHED", reach=reach(2000.0), time_ms=str(NOW_MS + 99)))
    steps.append(delta(3, cause="PUBLISHED", reach=reach(2000.0), time_ms=str(NOW_MS + 100)))
    steps.append(delta(4, cause="PUBLISHED", reach=reach(2000.0), time_ms=str(NOW_MS + 50)))
    steps += [DISCONNECT, CONNECT, welcome(4, [(1, TEA)], resumed=True, time_ms=NOW_MS + 200)]
    return [*steps, delta(5, reach=reach(math.inf), report_sequence="1", time_ms=str(NOW_MS + 200))]


def _reused():
    other = entry(1, 14.501, key="other", payload="AQI=")
    return [*_online(), delta(2, cause="PUBLISHED", add=[other], reach=reach(2000.0))]


def _acks():
    steps = _online()
    steps += [delta(one, cause="PUBLISHED", reach=reach(2000.0)) for one in range(2, 36)]
    return [*steps, move(14.6), delta(36, cause="PUBLISHED", reach=reach(2000.0))]


def _ends():
    steps = [*_online(), {"op": "unsubscribe", "subscription_id": 1}]
    steps.append(delta(2, cause="PUBLISHED", add=[entry(9, 14.5)], reach=reach(2000.0)))
    steps.append(receive(unsubscribed={"subscription_id": 1}))
    steps += [subscribe(TEA), snapshot(3, 2, reach=reach(math.inf)), DISCONNECT]
    steps += [{"op": "unsubscribe", "subscription_id": 2}, CONNECT, welcome(3, [(2, TEA)], resumed=True)]
    steps.append(receive(unsubscribed={"subscription_id": 2}))
    steps += [subscribe(NEAR), snapshot(4, 3, add=[entry(1, 14.5)], slack=slack(10.0))]
    return [*steps, receive(unsubscribed={"subscription_id": 3})]


def _refused_end():
    steps = [
        *_online(),
        {"op": "unsubscribe", "subscription_id": 1},
        rejection("UNSUBSCRIBE", 1, "INTERNAL"),
    ]
    steps += [pong(7), rejection("UNSUBSCRIBE", 1, "UNKNOWN_SUBSCRIPTION"), pong(8)]
    return steps


def _refused_subscribe():
    steps = [CONNECT, welcome(), subscribe(TEA), rejection("SUBSCRIBE", 1, "INVALID_FIELD")]
    return [
        *steps,
        subscribe(TEA, "tea"),
        rejection("SUBSCRIBE", 2, "SUBSCRIPTION_EXISTS"),
        subscribe(NEAR, "tea"),
    ]


def _refused_report():
    steps = [*_online(), move(14.6), rejection("REPORT", 1, "UNKNOWN_SUBSCRIPTION")]
    steps.append(snapshot(2, at=(14.6, 35.5), add=[entry(8, 14.6)], reach=reach(math.inf)))
    return [
        *steps,
        rejection("REPORT", 1, "UNKNOWN_SUBSCRIPTION"),
        rejection("UNSPECIFIED", 0, "OUT_OF_ORDER"),
    ]


def _adopted():
    steps = [subscribe(TEA), CONNECT, welcome(2, [(1, NEAR), (4, TEA)])]
    steps.append(snapshot(1, 1, cause="RESUMED", add=[entry(1, 14.5)], slack=slack(100.0)))
    steps.append(snapshot(2, 4, cause="RESUMED", add=[entry(1, 14.5)], reach=reach(math.inf)))
    return [*steps, snapshot(3, 5, add=[entry(1, 14.5)], reach=reach(math.inf)), subscribe(TEA)]


def _unknown_kinds():
    steps = [CONNECT, welcome(1, [(3, {"top_k": TEA["top_k"], "region": 9}), (4, {}, "tea")])]
    steps.append(snapshot(1, 3, add=[entry(1, 14.5)], slack=slack(5.0)))
    steps += [
        receive(locate={"subscription_ids": [3]}),
        move(14.9),
        subscribe(TEA),
        subscribe(TEA, "tea"),
    ]
    return [*steps, DISCONNECT, CONNECT, welcome(1, [(3, {}), (5, TEA)], resumed=True)]


def _names():
    steps = [subscribe(TEA, "a"), subscribe(NEAR, "b"), CONNECT]
    steps.append(welcome(2, [(1, NEAR, "b"), (7, TEA, "a"), (9, TEA, "c")]))
    steps.append(snapshot(1, 1, cause="RESUMED", add=[entry(1, 14.5)], slack=slack(100.0)))
    steps.append(snapshot(2, 7, cause="RESUMED", add=[entry(1, 14.5)], reach=reach(math.inf)))
    steps += [subscribe(TEA, "a"), subscribe(NEAR, "c"), subscribe(TEA, "d")]
    return [*steps, snapshot(3, 9, cause="RESUMED", add=[entry(2, 14.5)], reach=reach(math.inf))]


def _change():
    steps = [*_online(name="tea"), subscribe(NEAR, "tea"), subscribe(NEAR, "tea"), move(14.6)]
    steps.append(delta(2, cause="PUBLISHED", add=[entry(4, 14.6)], reach=reach(2000.0)))
    steps.append(snapshot(3, at=(14.6, 35.5), add=[entry(4, 14.6)], slack=slack(300.0)))
    steps += [pong(1), subscribe(TEA, "tea"), subscribe(NEAR, "tea"), subscribe(FIXED, "tea")]
    steps.append(snapshot(4, at=(14.6, 35.5), add=[entry(4, 14.6)], reach=reach(math.inf)))
    steps += [pong(2), snapshot(5, add=[entry(4, 14.6)], slack=slack(math.inf))]
    return [*steps, pong(3), subscribe(FIXED, "tea")]


def _refused_change():
    steps = [*_online(name="tea"), subscribe(NEAR, "tea"), rejection("SUBSCRIBE", 1, "INVALID_FIELD")]
    steps += [pong(1), move(14.6), subscribe(NEAR, "tea"), subscribe(FIXED, "tea")]
    return [*steps, rejection("SUBSCRIBE", 1, "INVALID_FIELD"), pong(2)]


def _held_change():
    """A snapshot with another cause belongs to the new spec if the pong follows it."""
    coalesced = snapshot(5, cause="RESUMED", add=[entry(4, 14.5)], slack=slack(300.0))
    later = delta(6, cause="PUBLISHED", add=[entry(6, 14.5)], slack=slack(300.0))
    steps = [*_online(name="tea"), subscribe(NEAR, "tea"), coalesced, later, pong(1)]
    steps += [subscribe(TEA, "tea"), snapshot(7, cause="RESUMED", add=[entry(4, 14.5)], slack=slack(9.0))]
    return [*steps, rejection("SUBSCRIBE", 1, "INVALID_FIELD"), pong(2)]


def _lost_change():
    """The server has not received the change: what was held is of the old spec."""
    coalesced = snapshot(5, cause="RESUMED", add=[entry(4, 14.5)], reach=reach(500.0))
    steps = [*_online(name="tea"), subscribe(NEAR, "tea"), coalesced, DISCONNECT, CONNECT]
    return [*steps, welcome(5, [(1, TEA, "tea")], resumed=True), pong(2)]


def _offline_change():
    steps = [*_online(name="tea"), DISCONNECT, subscribe(NEAR, "tea"), CONNECT]
    steps.append(welcome(1, [(1, TEA, "tea")], resumed=True))
    steps += [DISCONNECT, CONNECT, welcome(1, [(1, NEAR, "tea")], resumed=True), pong(2)]
    steps.append(snapshot(2, add=[entry(4, 14.5)], slack=slack(300.0)))
    steps += [subscribe(TEA, "tea"), DISCONNECT, CONNECT, welcome(3, [(1, TEA, "tea")], epoch=3)]
    return [*steps, snapshot(3, cause="RESUMED", add=[entry(4, 14.5)], reach=reach(math.inf)), pong(4)]


def _moved():
    """GoAway, and another server that knows the device, with another clock and epoch."""
    steps = [*_online(), receive(go_away={"error": {"reason": "ERROR_REASON_DRAINING"}}), DISCONNECT]
    steps += [CONNECT, welcome(2, [(1, TEA)], epoch=99, time_ms=NOW_MS - 5000)]
    return [*steps, snapshot(2, cause="RESUMED", add=[entry(2, 14.5)], reach=reach(500.0)), move(14.52)]


def _take_over():
    return [CONNECT, DISCONNECT, CONNECT, welcome(), DISCONNECT, CONNECT]


def _elsewhere():
    """Refused hellos, and the end of a conversation; then another server has another epoch."""
    steps = [CONNECT, rejection("HELLO", 0, "ANOTHER_SERVER", server="10.0.0.2:7433"), *_online(TEA)]
    steps += [detached("ANOTHER_SERVER"), move(14.52), CONNECT]
    steps += [rejection("HELLO", 0, "RECOVERING", retry_after_ms="500"), CONNECT]
    return [
        *steps,
        welcome(2, [(1, TEA)], epoch=5),
        snapshot(2, add=[entry(1, 14.5)], reach=reach(math.inf)),
    ]


def _lagging():
    """Within the region and beyond it, over a broken stream, and with requests that are refused.

    An end and a new subscription are sent again when the server has caught up.
    """
    lag, current = receive(lag={"offset": "41"}), receive(lag={})
    steps = [*_online(TEA, add=[entry(1, 14.501)]), lag, move(14.6)]
    steps += [delta(2, at=(14.6, 35.5), report_sequence="1", reach=reach(math.inf)), current]
    steps += [DISCONNECT, CONNECT, welcome(2, [(1, TEA)], resumed=True, lag_offset="43")]
    steps += [{"op": "unsubscribe", "subscription_id": 1}, rejection("UNSUBSCRIBE", 1, "LAGGING")]
    steps += [subscribe(NEAR), rejection("SUBSCRIBE", 2, "LAGGING", retry_after_ms="1000")]
    return [*steps, current]


def _leases():
    steps = [*_online(), detached("SILENT"), welcome(1, [(1, TEA)], resumed=True), move(14.5001)]
    steps += [detached("LEASE_EXPIRED"), welcome(1, [(1, TEA)], resumed=True, lease_ms="3000")]
    steps.append(
        receive(delta=delta(2, reach=reach(2000.0), time_ms=str(NOW_MS + 999))["message"]["delta"])
    )
    steps += [PASS_TIME, {"op": "beat"}]
    steps.append(delta(3, cause="PUBLISHED", reach=reach(2000.0), time_ms=str(NOW_MS + 1000)))
    return [*steps, PASS_TIME, {"op": "beat"}, pong(1)]


def _locate():
    ellipse = {**TEA, "region": "REGION_MODE_ELLIPSE"}
    steps = _online(ellipse, {"reach": reach(2000.0, 9)}, [entry(1, 14.501), entry(2, 14.503)])
    steps += [move(14.5001), receive(locate={"subscription_ids": [1, 8]})]
    steps.append(receive(locate={"subscription_ids": [1]}))
    answer = delta(
        2, at=(14.5001, 35.5), add=[entry(7, 14.5)], drop=[(2, "OUT_OF_REACH")], reach=reach(60.0)
    )
    answer["message"]["delta"]["report_sequence"] = "1"
    return [*steps, answer, move(14.5002, accuracy_m=5.0)]


def _poor():
    steps = [*_online(), move(14.5001, accuracy_m=30.0), move(14.5001, accuracy_m=800.0)]
    steps.append(delta(2, at=(14.5001, 35.5), reach=reach(9000.0), report_sequence="1"))
    return [*steps, move(14.503, accuracy_m=700.0), move(14.503, accuracy_m=10_000.0)]


def _too_vague():
    at = (14.5001, 35.5)
    steps = [*_online(bound={"reach": reach(1500.0)}), move(*at, accuracy_m=800.0)]
    steps.append(delta(2, at=at, reach=reach(1700.0), report_sequence="1"))
    steps += [
        move(14.5002, accuracy_m=800.0),
        move(14.5002, accuracy_m=900.0),
        move(14.5003, accuracy_m=400.0),
    ]
    return [*steps, move(14.5003, accuracy_m=800.0), move(14.52, accuracy_m=800.0)]


def _vague_and_lacking():
    """A device that waits for a better fix reports when an object ends and too few are left."""
    at = (14.5001, 35.5)
    add = [entry(1, 14.501), entry(2, 14.503, expiry_ms=NOW_MS + 100)]
    steps = [*_online(bound={"reach": reach(1500.0)}, add=add), move(*at, accuracy_m=800.0)]
    steps.append(delta(2, at=at, reach=reach(1700.0), report_sequence="1"))
    later = {"report_sequence": "1", "time_ms": str(NOW_MS + 100)}
    return [*steps, delta(3, cause="PUBLISHED", at=at, reach=reach(1700.0), **later)]


def _ranges():
    add = [entry(1, 14.501), entry(2, 14.506), entry(3, 14.508)]
    steps = _online(NEAR, {"slack": slack(400.0)}, add)
    steps += [move(14.502), move(14.5039), move(14.5045)]
    answer = {"at": (14.5045, 35.5), "slack": slack(250.0), "report_sequence": "1"}
    steps.append(delta(2, add=[entry(4, 14.5046)], drop=[(1, "OUT_OF_REACH")], **answer))
    return [*steps, move(14.5046), move(14.49)]


def _too_many():
    add = [entry(i, 14.5 + i * 1e-4, expiry_ms=NOW_MS + 10 * i) for i in range(1, 11)]
    steps = _online(NEAR, {"slack": slack(0.0, too_many=True)}, add)
    steps += [move(14.5002), move(14.502)]
    at = {"at": (14.502, 35.5), "report_sequence": "1"}
    steps.append(delta(2, slack=slack(0.0, too_many=True), **at))
    later = {**at, "time_ms": str(NOW_MS + 25)}
    steps.append(delta(3, cause="REFILLED", slack=slack(0.0, too_many=True), **later))
    return [*steps, delta(4, slack=slack(50.0), **{**later, "report_sequence": "2"})]


def _areas():
    square = {"rectangle": {"lon_min": 14.505, "lat_min": 35.499, "lon_max": 14.507, "lat_max": 35.501}}
    corners = ((14.495, 35.5), (14.49, 35.501), (14.49, 35.499))
    polygon = {"polygon": {"vertices": [{"lon": lon, "lat": lat} for lon, lat in corners]}}
    add = [entry(1, 14.506, area=square), entry(2, 14.491, area=polygon), entry(3, 14.51)]
    steps = _online(NEAR, {"slack": slack(900.0)}, add)
    return [*steps, move(14.5001), move(14.4999), move(14.503)]


def _fixed():
    steps = _online(FIXED, {"slack": slack(math.inf)}, [entry(1, 14.501), entry(2, 14.49)])
    steps += [move(14.9), move(0.0, -80.0), DISCONNECT, move(14.5)]
    return steps


def _windows():
    last_second = {**TEA, "window": {"duration_ms": "1000"}}
    last_two = {**NEAR, "window": {"count": "2"}}
    add = [
        entry(1, 14.501, created_ms=NOW_MS - 500),
        entry(2, 14.503, created_ms=NOW_MS),
        entry(3, 14.51, created_ms=NOW_MS, expiry_ms=NOW_MS + 600),
    ]
    steps = [*_online(last_second, add=add), subscribe(last_two)]
    steps.append(snapshot(2, 2, add=add[:2], slack=slack(100.0)))
    for version, time_ms in ((3, 499), (4, 500), (5, 600), (6, 1000)):
        later = str(NOW_MS + time_ms)
        steps.append(delta(version, cause="PUBLISHED", reach=reach(2000.0), time_ms=later))
    newer = [entry(4, 14.5, created_ms=NOW_MS + 1000)]
    left = {"drop": [(1, "OUT_OF_WINDOW")], "time_ms": str(NOW_MS + 1000)}
    steps.append(delta(7, 2, cause="PUBLISHED", add=newer, slack=slack(100.0), **left))
    return [*steps, DISCONNECT]


def _dwell():
    spec = {**NEAR, "boolean": {**NEAR["boolean"], "dwell_ms": "2000"}}
    steps = _online(spec, {"slack": slack(400.0)}, [entry(1, 14.501), entry(2, 14.5035)])
    tick = {"slack": slack(400.0), "cause": "PUBLISHED"}
    steps += [move(14.4975), delta(2, **tick, time_ms=str(NOW_MS + 1000)), move(14.5)]
    steps += [delta(3, **tick, time_ms=str(NOW_MS + 1999)), delta(4, **tick, time_ms=str(NOW_MS + 2000))]
    steps += [PASS_TIME, delta(5, **tick, time_ms=str(NOW_MS + 3000)), PASS_TIME]
    steps += [move(14.4965), move(14.5)]
    # An object that ends, and another one under its id: the time starts again.
    ends = entry(5, 14.5, created_ms=NOW_MS + 3000, expiry_ms=NOW_MS + 6000)
    steps.append(delta(6, add=[ends], **tick, time_ms=str(NOW_MS + 3000)))
    again = [
        entry(5, 14.5, created_ms=NOW_MS + 6000),
        entry(1, 14.501, created_ms=NOW_MS + 6000, key="other"),
    ]
    return [*steps, delta(7, add=again, **tick, time_ms=str(NOW_MS + 6000))]


def _stationary():
    spec = {**TEA, "region": "REGION_MODE_STATIONARY"}
    add = [entry(1, 14.501, expiry_ms=NOW_MS + 100), entry(2, 14.503, expiry_ms=NOW_MS + 300)]
    steps = _online(spec, add=add)
    later = {"reach": reach(2000.0), "time_ms": str(NOW_MS + 100)}
    steps.append(delta(2, 9, cause="PUBLISHED", time_ms=str(NOW_MS + 100)))
    steps.append(delta(3, cause="REFILLED", add=[entry(3, 14.51)], **later))
    return [*steps, move(14.50001), move(14.5), DISCONNECT]


def _unresponsive():
    off = {"op": "set_responsive", "is_responsive": False}
    return [*_online(), move(14.6), off, move(14.5001), {**off, "is_responsive": True}, off, DISCONNECT]


def _bad_values():
    steps = [*_online(), move(181.0), move(14.5, 90.5), move(14.5, accuracy_m=-1.0)]
    steps += [move(14.5, heading_deg=361.0), move(14.5, speed_mps=-0.5)]
    steps += [
        move(14.6, heading_deg=-90.0, speed_mps=1.5),
        subscribe(TEA, "a" * 129),
        subscribe(TEA, "\n"),
    ]
    ellipse = {**TEA, "region": "REGION_MODE_ELLIPSE"}
    return [*steps, subscribe(ellipse), move(14.6, accuracy_m=3.0)]


def _prefetch():
    steps = [*_online(bound={"reach": reach(1500.0)}), move(14.503), move(14.506), move(14.5085)]
    answer = {"at": (14.5085, 35.5), "reach": reach(1500.0), "report_sequence": "1"}
    steps += [delta(2, **answer), move(14.5061)]
    # A region smaller than twice the distance: the device reports halfway.
    at = (14.52, 35.5)
    steps.append(move(*at))
    near = {"at": at, "add": [entry(20, 14.52), entry(21, 14.5201)], "reach": reach(100.0)}
    return [*steps, delta(3, **near, report_sequence="2"), move(14.5201), move(14.5204)]


def _continent():
    frame, here = CONTINENT, (2.35, 48.85)
    add = [entry(1, 13.4, 52.5, frame=frame), entry(2, -3.7, 40.4, 1000.0, frame=frame)]
    steps = [subscribe(TEA), CONNECT, welcome(frame=frame), move(*here)]
    bound = {"reach": reach(2_500_000.0, 3), "at": here, "frame": frame}
    steps.append(snapshot(1, add=add, **bound))
    steps += [move(4.9, 52.4), move(12.5, 41.9), move(-9.1, 38.7), move(25.0, 60.2)]
    return steps


def _real_time():
    """The device's own clock counts on between messages; a welcome never sets it back."""
    add = [entry(1, 14.501, expiry_ms=NOW_MS + 1500), entry(2, 14.503), entry(3, 14.51)]
    first = {"virtual_time": False, "lease_ms": "9000"}
    steps = [subscribe(TEA), CONNECT, welcome(**first), snapshot(1, add=add, reach=reach(2000.0))]
    steps += [{**move(14.5001), "steady_ms": "51499"}, {**PASS_TIME, "steady_ms": "51500"}]
    steps += [{"op": "beat", "steady_ms": "52999"}, {"op": "beat", "steady_ms": "53000"}, DISCONNECT]
    steps += [{**CONNECT, "steady_ms": "60000"}, welcome(1, [(1, TEA)], resumed=True, **first)]
    return [*steps, {**move(HERE[0]), "steady_ms": "61000"}, {**move(14.5003), "steady_ms": "69000"}]
