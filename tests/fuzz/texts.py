"""Texts and files that people write: expressions, settings, idf tables, key sets, tokens, addresses."""

from __future__ import annotations

import json
import os
import time
import tomllib
from pathlib import Path

from pydantic import ValidationError

from feeds.redis.address import AddressError, RedisAddress
from identity.certificates import read_chain, read_private_key
from identity.issuer import Issuer
from identity.keys import Keys, parse_keys, read_keys
from identity.principal import Role
from identity.tokens import TokenPolicy, TokenVerifier
from identity.watched_file import LOOK_S, FileError, WatchedFiles
from nearcast.errors import Reason, RefusedError
from nearcast.expressions import clauses_of, text_of
from nearcast.limits import EXPRESSION_LENGTH_MAX
from safe_region.scoring.idf import IdfError, IdfTable
from server.settings import ServerSettings
from tests.fuzz.target import Target, scratch_folder

_PATH = Path("file")
_ISSUER = Issuer()


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape" if data[:1] == b"\xff" else "replace")


def _expressions():
    def run(data: bytes) -> None:
        try:
            clauses = clauses_of(_text(data))
        except RefusedError as error:
            assert error.field
            return
        text = text_of(clauses)  # may be longer than what may be written
        assert len(text) > EXPRESSION_LENGTH_MAX or clauses_of(text) == clauses

    return run


def _settings():
    def run(data: bytes) -> None:
        try:
            found = tomllib.loads(_text(data))
        except (tomllib.TOMLDecodeError, RecursionError):
            return
        try:
            ServerSettings(**found)
        except (ValidationError, TypeError) as error:
            assert isinstance(error, ValidationError) or "keywords must be strings" in str(error)

    return run


def _idf():
    def run(data: bytes) -> None:
        try:
            table = IdfTable.from_json(_text(data))
        except IdfError:
            return
        assert IdfTable.from_json(table.as_json()).weights == table.weights

    return run


def _keys():
    def run(data: bytes) -> None:
        for read in (parse_keys, read_chain, read_private_key):
            try:
                read(data, _PATH)
            except FileError as error:
                assert str(_PATH) in str(error)

    return run


def _reloads():
    """A key set that changes beneath a server: what is good comes into force, else the old stays."""
    path = scratch_folder() / "keys.json"
    good = _ISSUER.key_set().encode()
    token = _ISSUER.token("d", [Role.DEVICE])
    path.write_bytes(good)
    now_s = [0.0]
    watched = WatchedFiles([path], lambda: read_keys(path), lambda: now_s[0])
    verifier = TokenVerifier(watched, TokenPolicy("nearcast"), {})

    def run(data: bytes) -> None:
        before = watched.content
        path.write_bytes(data)
        now_s[0] += 2.0 * LOOK_S
        os.utime(path, ns=(int(now_s[0] * 1e9), int(now_s[0] * 1e9)))
        found = watched.look()
        assert found
        try:
            assert found.keys() == parse_keys(data, path).keys()
        except FileError:
            assert found is before
        try:
            verifier.principal(token)
        except RefusedError as error:
            assert error.reason is Reason.UNAUTHENTICATED

    return run


class KeysInMemory:
    """Stands for a file that does not change."""

    generation = 1

    def __init__(self, keys: Keys) -> None:
        self._keys = keys

    def look(self) -> Keys:
        return self._keys


def _tokens():
    keys = parse_keys(_ISSUER.key_set().encode(), _PATH)
    verifier = TokenVerifier(KeysInMemory(keys), TokenPolicy("nearcast", tenants=("acme",)), {})

    def run(data: bytes) -> None:
        text = _text(data)
        if data[:1] == b"{":  # claims that our key signs
            try:
                claims = json.loads(data)
                text = _ISSUER.token("d", [Role.DEVICE], **claims)
            except (ValueError, TypeError, RecursionError):
                return
        try:
            found = verifier.principal(text)
        except RefusedError as error:
            assert error.reason in (Reason.UNAUTHENTICATED, Reason.TOKEN_EXPIRED)
            assert len(text) < 30 or text not in str(error)
            return
        assert found.roles
        assert found.tenant in ("", "acme")
        assert found.id.isprintable()
        assert found.expires_s > time.time()

    return run


def _addresses():
    def run(data: bytes) -> None:
        text = _text(data)
        try:
            found = RedisAddress.parse(text)
        except AddressError:
            return
        assert RedisAddress.parse(str(found)) == found

    return run


def _token_seeds() -> list[bytes]:
    token = _ISSUER.token("d", [Role.DEVICE], tenant="acme")
    header, claims, _ = token.split(".")
    texts = [token, f"{header}.{claims}.", f"{claims}.{claims}.{claims}"]
    claims = [{"roles": ["device", "operator"], "tenant": "acme"}, {"exp": 9e9, "nbf": 1, "iat": 1}]
    claims += [{"sub": "x", "aud": ["nearcast", "y"]}, {"roles": [], "exp": -1, "tenant": 7}]
    return [*(text.encode() for text in texts), *(json.dumps(one).encode() for one in claims)]


def _key_seeds() -> list[bytes]:
    from tests.support.identity import Authority  # noqa: PLC0415

    rsa = {"kty": "RSA", "n": "sXch" * 86, "e": "AQAB", "kid": "r", "alg": "RS256"}
    curve = {"kty": "EC", "crv": "P-256", "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU", "kid": "e"}
    curve["y"] = "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
    sets = [{"keys": [one]} for one in (_ISSUER.public_key(), rsa, curve)]
    return [*(json.dumps(one).encode() for one in sets), *Authority().issue()]


def _setting_seeds() -> list[bytes]:
    lines = (
        'area = [14.0, 35.0, 15.0, 36.0]\nport = 7\nbuffer_extra = "auto"\ntokens = ["a"]\n',
        'area = "14,35,15,36"\nhost = "0.0.0.0"\ninsecure = true\nlease_ms = 5\nlog_level = "DEBUG"\n',
        'area = "14,35,15,36"\ntenants = ["acme"]\njwks = "pyproject.toml"\ndevice_rate = 0.5\n',
        'area = "14,35,15,36"\nvirtual_time = true\ninlet = "redis://h:1/0/f?streams=3"\n',
        'area = "1,2,3,4"\nobject_index = "naive"\nahead = 0.5\nkeepalive_ms = 100\ntls_key = "x"\n',
    )
    return [line.encode() for line in lines]


EXPRESSIONS = Target(
    "expressions",
    _expressions,
    lambda: [b'coffee AND NOT ("live music" OR tea)', b"a b OR c", "é AND 茶".encode(), b"NOT a", b'"'],
    ("nearcast.expressions", "nearcast.grammar", "nearcast.normal_form"),
    150_000,
)
SETTINGS = Target("settings", _settings, _setting_seeds, ("server.settings",), 60_000)
IDF = Target(
    "idf",
    _idf,
    lambda: [IdfTable({"a": 2.0, "茶": 0.5}, 3.0).as_json().encode(), b'{"format":"nearcast-idf"}', b"["],
    ("safe_region.scoring.idf", "safe_region.scoring.keywords"),
    200_000,
)
KEYS = Target("keys", _keys, _key_seeds, ("identity",), 100_000)
RELOADS = Target("reloads", _reloads, _key_seeds, ("identity",), 40_000)
TOKENS = Target("tokens", _tokens, _token_seeds, ("identity", "jwt"), 100_000)
ADDRESSES = Target(
    "addresses",
    _addresses,
    lambda: [b"redis://h:6379/0/feed?streams=4", b"rediss://[::1]:1/2/f.x-y", b"redis://u:p@h/0/f"],
    ("feeds.redis.address",),
    60_000,
)
