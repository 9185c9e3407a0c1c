"""Records of nodes, slots and subscriptions, to keys and values and back. O(size).

    node.<address>                        lease of a node
    slot.<slot>.owner                     owner of a slot, and the fence of all that follows
    slot.<slot>.device.<device>.<number>  subscription; under the number 0, when the device was last seen

`key_shared_records` has the other keys.
Addresses and ids are written in the alphabet of base64 for URLs, as keys are words without dots.
"""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable

from google.protobuf.message import DecodeError

from cluster import codec
from cluster.codec import Assembler, FormatError
from cluster.entries import FIRST_RULES, Entry, Founding
from cluster.keys import Record
from cluster.ownership import Lease, Node, NodeState
from cluster.registry import SEEN, LastSeen, SlotRecords, StoredSubscription
from cluster.slots import slot_of
from cluster.v1 import ownership_pb2 as pb

NODES = "node.*"
OWNERS = "slot.*.owner"
SUBSCRIPTIONS = "slot.*.device.>"
"""Patterns of all leases, of all owners, and of all subscriptions."""

_NODE, _SLOT, _OWNER, _SEEN = "node.", "slot.", ".owner", f".{SEEN}"


def node_key(address: str) -> str:
    """Return the key of the lease of a node."""
    return _NODE + _word(address)


def address_of(key: str) -> str:
    """Return the address in the key of a lease."""
    word = key.removeprefix(_NODE)
    return urlsafe_b64decode(word + "=" * (-len(word) % 4)).decode()


def owner_key(slot: int) -> str:
    """Return the key of the owner of a slot."""
    return f"{_SLOT}{slot}{_OWNER}"


def device_key(device_id: str, number: int) -> str:
    """Return the key of a subscription, or with `SEEN` that of when the device was last seen."""
    return f"{_SLOT}{slot_of(device_id)}.device.{_word(device_id)}.{number}"


def is_seen_key(key: str) -> bool:
    """Return whether the key of a device is that of when it was last seen."""
    return key.endswith(_SEEN)


def pattern_of(slot: int) -> str:
    """Return the pattern of the owner of a slot and of the records of its devices."""
    return f"{_SLOT}{slot}.>"


def slot_of_owner(key: str) -> int | None:
    """Return the slot of an owner's key; None for another key."""
    if not key.startswith(_SLOT) or not key.endswith(_OWNER):
        return None
    return int(key.removeprefix(_SLOT).removesuffix(_OWNER))


def encoded_lease(lease: Lease) -> bytes:
    """Return the value of a lease."""
    state = pb.NodeState.Name(lease.state.value)
    node = _node_message(lease.node)
    message = pb.Lease(
        node=node,
        state=state,
        stored_offset=lease.stored_offset,
        rules=lease.rules,
        has_source=lease.has_source,
        has_sink=lease.has_sink,
        weights=lease.weights,
    )
    return message.SerializeToString()


def lease_from(value: bytes) -> Lease:
    """Return the lease in a value.

    Raises
    ------
    FormatError
        If this version cannot read it.
    """
    try:
        message = pb.Lease.FromString(value)
        node, state = _node(message.node), NodeState(int(message.state))
        return Lease(
            node,
            state,
            message.stored_offset,
            rules=message.rules or FIRST_RULES,
            has_source=message.has_source,
            has_sink=message.has_sink,
            weights=message.weights,
        )
    except (DecodeError, ValueError) as error:
        raise FormatError(f"the lease of a node cannot be read: {error}") from error


def encoded_owner(node: Node | None) -> bytes:
    """Return the value of an owner; None for a slot that is released."""
    message = pb.Owner(released=True) if node is None else pb.Owner(node=_node_message(node))
    return message.SerializeToString()


def owner_from(value: bytes) -> Node | None:
    """Return the owner in a value. Raises FormatError if this version cannot read it."""
    try:
        message = pb.Owner.FromString(value)
    except DecodeError as error:
        raise FormatError(f"the owner of a slot cannot be read: {error}") from error
    return _node(message.node) if message.HasField("node") else None


def encoded(one: StoredSubscription | LastSeen | None) -> bytes:
    """Return the value of a record of a device; empty for one that is deleted."""
    if one is None:
        return b""
    if isinstance(one, LastSeen):
        return pb.LastSeen(device_id=one.device_id, time_ms=one.time_ms).SerializeToString()
    return pb.Subscription(
        device_id=one.device_id,
        subscription_id=one.subscription_id,
        kind=one.kind,
        spec=one.spec,
        name=one.name,
    ).SerializeToString()


def subscription_from(value: bytes) -> StoredSubscription:
    """Return the subscription in a value. Raises FormatError if this version cannot read it."""
    try:
        found = pb.Subscription.FromString(value)
    except DecodeError as error:
        raise FormatError(f"a subscription cannot be read: {error}") from error
    return StoredSubscription(found.device_id, found.subscription_id, found.kind, found.spec, found.name)


def seen_from(value: bytes) -> LastSeen:
    """Return when a device was last seen. Raises FormatError if this version cannot read it."""
    try:
        found = pb.LastSeen.FromString(value)
    except DecodeError as error:
        raise FormatError(f"when a device was last seen cannot be read: {error}") from error
    return LastSeen(found.device_id, found.time_ms)


def encoded_founding(entry: Entry) -> bytes:
    """Return the value of the first entry of a log: the message that has it."""
    return codec.encoded([entry])


def founding_from(value: bytes) -> Entry:
    """Return the first entry of a log. Raises FormatError if this version cannot read it."""
    entries = Assembler().decoded(value)
    if not entries or not isinstance(entries[0].change, Founding):
        raise FormatError("the first entry of the log cannot be read")
    return entries[0]


def _word(text: str) -> str:
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def _node_message(node: Node) -> pb.Node:
    return pb.Node(address=node.address, incarnation=node.incarnation)


def _node(message: pb.Node) -> Node:
    return Node(message.address, message.incarnation)


def of_devices(found: Iterable[Record]) -> SlotRecords:
    """Return the records of devices that are not deleted, subscriptions by device and number."""
    live = [one for one in found if one.value]
    subscriptions = [subscription_from(one.value) for one in live if not is_seen_key(one.key)]
    subscriptions.sort(key=lambda one: (one.device_id, one.subscription_id))
    return SlotRecords(subscriptions, [seen_from(one.value) for one in live if is_seen_key(one.key)])
