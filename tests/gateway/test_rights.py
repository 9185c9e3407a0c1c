"""The rules of rights at the gateway: each role and each call, of two tenants."""

from __future__ import annotations

import pytest

from gateway.calls import CALLS
from identity.principal import Role
from identity.rules import RULES
from tests.gateway.test_http import BODIES, OBJECT, call
from tests.gateway.town import reason_of
from tests.wire.test_bad_input import hello

ROLES = ("device", "gateway", "publisher", "operator")
MAY = {
    "publish": {"publisher"},
    "retract": {"publisher", "operator"},
    "search": set(ROLES),
    "forget": {"device", "gateway", "operator"},
    "status": {"operator"},
    "inspect": {"operator"},
}
MAY_ATTACH = {"own": {"device", "gateway"}, "another": {"gateway"}}
"""By whether the device has the id of the token."""


def test_the_table_is_whole():
    assert set(ROLES) == {role.value for role in Role}
    assert {one.name for one in CALLS} == set(MAY)
    for one in CALLS:
        assert {role.value for role in RULES[one.action].roles} == MAY[one.name]


@pytest.mark.parametrize("name", MAY)
@pytest.mark.parametrize("role", ROLES)
async def test_calls(town, role, name):
    for tenant in ("", "acme"):
        status, content = await call(town, name, roles=(role,), tenant=tenant)
        assert (status == 403) == (role not in MAY[name]), content
        if role not in MAY[name]:
            assert content["reason"] == "PERMISSION_DENIED"
            assert content["metadata"]["field"] == "token.roles"


@pytest.mark.parametrize("device", MAY_ATTACH)
@pytest.mark.parametrize("role", ROLES)
async def test_attach(town, role, device):
    name = "device" if device == "own" else "somebody"
    for tenant in ("", "acme"):
        async with town.client(role, name=name, tenant=tenant) as client:
            if role in MAY_ATTACH["own"]:
                await client.send(hello(device_id="device"))
            response = await client.receive()
            if role in MAY_ATTACH[device]:
                assert response.HasField("welcome"), response
                continue
            refused = response.rejection if response.HasField("rejection") else response.go_away
            assert reason_of(refused.error) == "PERMISSION_DENIED"
            field = "hello.device_id" if role in MAY_ATTACH["own"] else "token.roles"
            assert refused.error.field == field
            assert await client.closed() == 1008


@pytest.mark.parametrize("role", ["publisher", "operator"])
async def test_no_caller_reaches_an_object_of_another_tenant(town, role):
    _, published = await call(town, "publish", {"objects": [OBJECT]}, tenant="acme")
    status, content = await call(town, "retract", {"ids": published["ids"]}, roles=(role,))
    assert (status, content["reason"]) == (404, "UNKNOWN_OBJECT")
    assert (await call(town, "search"))[1]["matches"] == []
    found = (await call(town, "search", tenant="acme"))[1]["matches"]
    assert [one["object"]["id"] for one in found] == published["ids"]


async def test_a_device_deletes_its_own_data_only(town):
    for name, status in (("device", 403), ("somebody", 200)):
        found, content = await call(town, "forget", {"device_id": name}, roles=("device",))
        assert found == status, content


async def test_an_operator_inspects_its_own_tenant(town):
    _, published = await call(town, "publish", {"objects": [OBJECT]}, tenant="acme")
    body = {"object_id": published["ids"][0]}
    status, content = await call(town, "inspect", body, roles=("operator",))
    assert (status, content.get("reason", "")) in {(404, "UNKNOWN_OBJECT"), (200, "")}
    assert "sushi" not in str(content)
    _, content = await call(town, "inspect", body, roles=("operator",), tenant="acme")
    assert "sushi" in str(content)


async def test_a_caller_with_several_roles_has_the_rights_of_each(town):
    assert set(MAY) == set(BODIES)
    for name in MAY:
        status, _ = await call(town, name, roles=("device", "publisher", "operator"))
        assert status != 403
