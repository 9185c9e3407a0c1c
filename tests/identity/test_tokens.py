"""Which tokens are good, and whose; what is refused says why and nothing of the token."""

from __future__ import annotations

import base64
import json
import time

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from identity.issuer import Issuer
from identity.keys import read_keys
from identity.principal import Role
from identity.quotas import Quota
from identity.tokens import TokenPolicy, TokenVerifier
from identity.watched_file import LOOK_S, WatchedFiles
from nearcast.errors import Reason, RefusedError
from tests.support.identity import ISSUER, KEY, keys_in, token

QUOTAS = {Role.DEVICE: Quota(10.0, 2), Role.PUBLISHER: Quota(1000.0, 5)}


class Clock:
    def __init__(self, now_s):
        self.now_s = now_s

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock(time.time())


@pytest.fixture
def looks():
    return Clock(0.0)


@pytest.fixture
def verifier(tmp_path, clock, looks):
    path = keys_in(tmp_path)
    files = WatchedFiles([path], lambda: read_keys(path), looks)
    policy = TokenPolicy("nearcast", tenants=("acme",), skew_s=30.0)
    return TokenVerifier(files, policy, QUOTAS, clock)


def unsigned(claims, header):
    parts = (json.dumps(one).encode() for one in (header, claims))
    return ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode() for part in parts) + "."


def refused(verifier, text):
    with pytest.raises(RefusedError) as failed:
        verifier.principal(text)
    message = f"{failed.value} {failed.value.value}"
    assert text not in message
    assert not any(part and part in message for part in text.split("."))
    return failed.value


def test_the_principal_of_a_token(verifier, clock):
    found = verifier.principal(token("shop-7", "publisher", "operator", tenant="acme"))
    assert (found.id, found.tenant) == ("shop-7", "acme")
    assert found.roles == {Role.PUBLISHER, Role.OPERATOR}
    assert clock() + 3600 <= found.expires_s <= clock() + 3640
    assert found.owner == "acme\x1fshop-7"
    assert verifier.principal(token("d", "device")).owner == "d"


def test_an_operator_alone_is_not_limited_here_and_the_widest_role_counts(verifier):
    device = verifier.principal(token("one", "device"))
    both = verifier.principal(token("one", "device", "publisher"))
    assert device.account.is_limited
    assert device.account is not both.account


def test_callers_of_the_same_name_share_an_account_and_tenants_do_not(verifier):
    first, again = (verifier.principal(token("d", "device", ttl_s=ttl_s)) for ttl_s in (60, 61))
    other = verifier.principal(token("d", "device", tenant="acme"))
    assert first.account is again.account
    assert other.account is not first.account


REFUSED = {
    "another key": (lambda: token("d", "device", by=Issuer()), "token.kid"),
    "another key of the same name": (
        lambda: jwt.encode(
            {"sub": "d", "aud": "nearcast", "roles": ["device"], "exp": time.time() + 60},
            Ed25519PrivateKey.generate(),
            "EdDSA",
            {"kid": ISSUER.public_key()["kid"]},
        ),
        "token",
    ),
    "no signature": (
        lambda: unsigned(
            {"sub": "d", "aud": "nearcast", "roles": ["operator"], "exp": time.time() + 60},
            {"alg": "none", "kid": ISSUER.public_key()["kid"]},
        ),
        "token",
    ),
    "signed with the public key": (
        lambda: jwt.encode(
            {"sub": "d", "aud": "nearcast", "roles": ["operator"], "exp": time.time() + 60},
            ISSUER.public_key()["x"] * 2,
            "HS256",
            {"kid": ISSUER.public_key()["kid"]},
        ),
        "token",
    ),
    "cut short": (lambda: token("d", "device")[:-3], "token"),
    "nothing of the kind": (lambda: "secret", "token"),
    "dots": (lambda: "..", "token"),
    "huge": (lambda: "x" * 10_000, "token"),
    "not yet valid": (lambda: token("d", "device", nbf=int(time.time()) + 90), "token.nbf or token.iat"),
    "a clock far off": (
        lambda: token("d", "device", iat=int(time.time()) + 90),
        "token.nbf or token.iat",
    ),
    "another audience": (lambda: token("d", "device", audience="others"), "token.aud"),
    "another tenant": (lambda: token("d", "device", tenant="unknown"), "token.tenant"),
    "a tenant that is a list": (lambda: token("d", "device", tenant=["acme"]), "token.tenant"),
    "an unknown role": (lambda: token("d", "device", roles=["device", "chef"]), "token.roles"),
    "no role": (lambda: token("d"), "token.roles"),
    "roles that are a text": (lambda: token("d", roles="operator"), "token.roles"),
    "a role that is a list": (lambda: token("d", roles=[["operator"]]), "token.roles"),
    "no name": (lambda: token("", "device"), "token.sub"),
    "a name of another tenant": (lambda: token("acme\x1fd", "device"), "token.sub"),
    "a long name": (lambda: token("d" * 129, "device"), "token.sub"),
    "a name that is a number": (lambda: token("d", "device", sub=7), "token.sub"),
    "an end that is a text": (lambda: token("d", "device", exp="later"), "token.exp"),
    "an end that is no number": (lambda: token("d", "device", exp=float("nan")), "token.exp"),
    "an end that never comes": (lambda: token("d", "device", exp=float("inf")), "token.exp"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_tokens(verifier, name):
    make, field = REFUSED[name]
    error = refused(verifier, make())
    assert (error.reason, error.field) == (Reason.UNAUTHENTICATED, field)


@pytest.mark.parametrize("claim", ["exp", "sub", "aud"])
def test_required_claims(verifier, claim):
    claims = {"sub": "d", "aud": "nearcast", "roles": ["device"], "exp": int(time.time()) + 60}
    del claims[claim]
    text = jwt.encode(claims, KEY, "EdDSA", {"kid": ISSUER.public_key()["kid"]})
    assert refused(verifier, text).field == f"token.{claim}"


def test_a_token_expires_after_it_was_verified_too(verifier, clock):
    text = token("d", "device", ttl_s=60)
    verifier.principal(text)
    clock.now_s += 60 + 29
    verifier.principal(text)  # clocks may be off by half a minute
    clock.now_s += 2
    assert refused(verifier, text).reason is Reason.TOKEN_EXPIRED
    assert refused(verifier, token("e", "device", ttl_s=-60)).reason is Reason.TOKEN_EXPIRED


def test_the_signer_must_be_the_issuer_if_there_is_one(tmp_path):
    path = keys_in(tmp_path)
    files = WatchedFiles([path], lambda: read_keys(path))
    verifier = TokenVerifier(files, TokenPolicy("nearcast", "https://id.example"), QUOTAS)
    assert verifier.principal(token("d", "device", issuer="https://id.example")).id == "d"
    assert refused(verifier, token("d", "device", issuer="https://other.example")).field == "token.iss"
    assert refused(verifier, token("d", "device")).field == "token.iss"


def test_keys_rotate_by_their_file(verifier, tmp_path, looks):
    new = Issuer()
    verifier.principal(token("d", "device"))
    keys_in(tmp_path, ISSUER, new)
    looks.now_s += LOOK_S
    verifier.principal(token("d", "device", by=new))
    verifier.principal(token("d", "device"))
    keys_in(tmp_path, new)
    looks.now_s += LOOK_S
    verifier.principal(token("d", "device", by=new))
    assert refused(verifier, token("d", "device")).field == "token.kid", "kept tokens go with their key"


@pytest.mark.parametrize("text", ["", "no JSON", '{"keys": []}'])
def test_a_key_set_that_breaks_leaves_the_one_before_in_force(verifier, tmp_path, looks, text, caplog):
    (tmp_path / "keys.json").write_text(text, encoding="utf-8")
    looks.now_s += LOOK_S
    assert verifier.principal(token("d", "device")).id == "d"
    assert "stay in force" in caplog.text
    (tmp_path / "keys.json").unlink()
    looks.now_s += LOOK_S
    assert verifier.principal(token("e", "device")).id == "e"


def test_an_rsa_key_signs_too(tmp_path):
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    public = json.loads(jwt.get_algorithm_by_name("RS256").to_jwk(key.public_key()))
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [public | {"kid": "r", "alg": "RS256"}]}), encoding="utf-8")
    verifier = TokenVerifier(WatchedFiles([path], lambda: read_keys(path)), TokenPolicy("nearcast"), {})
    claims = {"sub": "d", "aud": "nearcast", "roles": ["device"], "exp": int(time.time()) + 60}
    assert verifier.principal(jwt.encode(claims, key, "RS256", {"kid": "r"})).id == "d"
    assert refused(verifier, jwt.encode(claims, key, "PS256", {"kid": "r"})).field == "token"
