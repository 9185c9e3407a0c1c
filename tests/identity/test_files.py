"""Keys and certificates that cannot be used are named at the start; a reload that fails keeps the old."""

from __future__ import annotations

import json
import os
from datetime import UTC, datetime, timedelta

import pytest

from identity import certificates
from identity.certificates import read_certificates, watched_certificates
from identity.issuer import Issuer
from identity.keys import read_keys
from identity.watched_file import LOOK_S, RETRY_S, FileError, WatchedFiles
from tests.support.identity import ISSUER, Authority

PUBLIC = ISSUER.public_key()
BAD_KEY_SETS = {
    "absent": (None, "cannot be read"),
    "no JSON": ("nothing", "is not a JSON Web Key Set"),
    "binary": (b"\xff\xfe\x00", "is not a JSON Web Key Set"),
    "a list": ([PUBLIC], "is not a JSON Web Key Set"),
    "a number": (7, "is not a JSON Web Key Set"),
    "empty": ({"keys": []}, "has no keys"),
    "keys by name": ({"keys": {"one": PUBLIC}}, "has no keys"),
    "no object": ({"keys": [7]}, "keys[0] is not a JSON object"),
    "no id": ({"keys": [PUBLIC | {"kid": ""}]}, "keys[0].kid is absent"),
    "one id twice": (
        {"keys": [PUBLIC, Issuer().public_key() | {"kid": PUBLIC["kid"]}]},
        "keys[1].kid is",
    ),
    "a shared secret": ({"keys": [{"kty": "oct", "k": "c2VjcmV0", "kid": "s"}]}, "is a shared secret"),
    "a private key": ({"keys": [PUBLIC | {"d": "c2VjcmV0"}]}, "is a private key"),
    "no key": ({"keys": [{"kty": "OKP", "crv": "Ed25519", "x": "", "kid": "s"}]}, "is not a valid key"),
    "an unknown kind": ({"keys": [{"kty": "ABC", "kid": "s"}]}, "is not a valid key"),
    "a short RSA key": (
        {"keys": [{"kty": "RSA", "n": "sXch" * 43, "e": "AQAB", "kid": "s", "alg": "RS256"}]},
        "must have at least 2048",
    ),
}


@pytest.mark.parametrize("name", BAD_KEY_SETS)
def test_a_key_set_that_cannot_be_used_is_named(tmp_path, name):
    content, message = BAD_KEY_SETS[name]
    path = tmp_path / "keys.json"
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content is not None:
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
    with pytest.raises(FileError, match=r"keys\.json") as failed:
        read_keys(path)
    assert message in str(failed.value)
    assert "c2VjcmV0" not in str(failed.value)


RSA = {"kty": "RSA", "n": "sXch" * 86, "e": "AQAB", "kid": "r", "alg": "RS256"}
UNUSABLE = [
    RSA | {"alg": "none"},
    RSA | {"use": "enc"},
    RSA | {"key_ops": ["encrypt"]},
    RSA | {"key_ops": 7},
    RSA | {"alg": "RSA-OAEP"},
    RSA | {"n": 5},
    PUBLIC | {"kid": "p", "alg": "HS256"},
    {"kty": "oct", "k": "c2VjcmV0", "kid": "s"},
    {"kty": "ABC\nINFO forged", "kid": "x" * 500},
    {"kty": "OKP", "crv": "X25519", "x": PUBLIC["x"], "kid": "x"},
    {"kty": 5, "kid": "n"},
    RSA | {"kid": 7},
    None,
]


@pytest.mark.parametrize("entry", UNUSABLE, ids=range(len(UNUSABLE)))
def test_a_key_that_cannot_be_used_is_passed_over_and_the_others_are_used(tmp_path, caplog, entry):
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"keys": [entry, PUBLIC]}))
    assert list(read_keys(path)) == [PUBLIC["kid"]]
    (record,) = caplog.records
    message = record.getMessage()
    assert message.startswith(f"a key is skipped: {path}: keys[0]")
    assert "c2VjcmV0" not in message
    assert len(message.splitlines()) == 1
    assert len(message) < 400
    path.write_text(json.dumps({"keys": [entry]}))
    with pytest.raises(FileError, match=r"has no usable key: .*keys\[0\]"):
        read_keys(path)


def test_an_unexpected_failure_of_a_reload_keeps_the_old_contents(tmp_path, caplog):
    path = tmp_path / "keys.json"
    path.write_text("1")
    now_s = [1e9]
    watched = WatchedFiles([path], lambda: 1 // len(path.read_text()), lambda: now_s[0])
    path.write_text("")
    now_s[0] += LOOK_S
    assert watched.look() == 1
    assert f"reload failed, the previous contents stay in force: {path}: ZeroDivisionError" in caplog.text
    path.write_text("1 ")
    now_s[0] += LOOK_S
    assert watched.look() == 0


def test_files_that_could_not_be_used_are_read_again_without_a_change_of_them(tmp_path, caplog):
    path = tmp_path / "keys.json"
    path.write_text("1")
    now_s, reads, failures = [1e9], [], []

    def read():
        reads.append(now_s[0])
        if failures:
            raise failures[0]
        return path.read_text()

    def look(seconds):
        now_s[0] += seconds
        return watched.look()

    watched = WatchedFiles([path], read, lambda: now_s[0])
    path.write_text("22")
    failures[:] = [FileError(f"{path} cannot be read: Permission denied")]
    assert look(LOOK_S) == "1"
    for _ in range(int(RETRY_S / LOOK_S) - 1):
        assert look(LOOK_S) == "1"
    assert len(reads) == 2, "not read again at each look"
    look(LOOK_S)
    look(RETRY_S)
    assert len(reads) == 4
    assert caplog.text.count("reload failed") == 1, "a failure that stays is logged once"
    failures[:] = [OSError(24, "Too many open files")]
    assert look(RETRY_S) == "1"
    assert caplog.text.count("reload failed") == 2
    failures.clear()
    assert look(RETRY_S) == "22"
    assert watched.generation == 2
    look(RETRY_S)
    assert len(reads) == 6, "files in use are read again only if they change"


def test_a_certificate_comes_into_force_when_it_becomes_valid(files, monkeypatch):
    day = [datetime.now(UTC)]

    class Calendar:
        @staticmethod
        def now(_zone):
            return day[0]

    monkeypatch.setattr(certificates, "datetime", Calendar)
    now_s = [1e9]
    watched = watched_certificates(*files[:2])
    monkeypatch.setattr(watched, "_clock", lambda: now_s[0])
    before = watched.look()
    for path, content in zip(files[:2], Authority().issue("x", 1, 9), strict=True):
        path.write_bytes(content)
    now_s[0] += LOOK_S
    assert watched.look() is before
    day[0] += timedelta(days=2)
    now_s[0] += RETRY_S
    assert watched.look().chain == files[0].read_bytes()


def test_a_file_that_is_absent_for_a_while_is_logged_once(files, caplog, monkeypatch):
    now_s = [1e9]
    watched = watched_certificates(*files)
    monkeypatch.setattr(watched, "_clock", lambda: now_s[0])
    aside = files[1].with_suffix(".aside")
    for count in (1, 2):
        os.rename(files[1], aside)  # noqa: PTH104 - keeps the stamp
        for _ in range(5):
            now_s[0] += LOOK_S
            watched.look()
        assert caplog.text.count("cannot be read") == count
        os.rename(aside, files[1])  # noqa: PTH104
        now_s[0] += LOOK_S
        watched.look()


@pytest.fixture
def files(tmp_path):
    """Write a certificate and its key, and what clients are verified with."""
    authority = Authority()
    certificate, key = authority.issue()
    found = tmp_path / "chain.pem", tmp_path / "key.pem", tmp_path / "roots.pem"
    for path, content in zip(found, (certificate, key, authority.pem), strict=True):
        path.write_bytes(content)
    return found


def test_certificates_that_can_be_used(files):
    found = read_certificates(*files)
    assert [found.chain, found.key, found.client_roots] == [path.read_bytes() for path in files]
    assert read_certificates(*files[:2]).client_roots is None


def broken(files, name):  # noqa: C901 - one branch a case
    chain, key, roots = files
    other = Authority()
    match name:
        case "another key":
            key.write_bytes(other.issue()[1])
        case "over":
            for path, content in zip((chain, key), other.issue("x", -9, -1), strict=True):
                path.write_bytes(content)
        case "not yet":
            for path, content in zip((chain, key), other.issue("x", 1, 9), strict=True):
                path.write_bytes(content)
        case "a broken chain":
            chain.write_bytes(chain.read_bytes()[:200])
        case "an empty chain":
            chain.write_bytes(b"")
        case "a broken key":
            key.write_bytes(key.read_bytes()[:60])
        case "files exchanged":
            chain_pem, key_pem = chain.read_bytes(), key.read_bytes()
            chain.write_bytes(key_pem)
            key.write_bytes(chain_pem)
        case "no roots":
            roots.write_bytes(b"nothing")
        case "absent":
            key.unlink()


BROKEN = {
    "another key": "does not belong to the certificate",
    "over": "clock of this machine shows",
    "not yet": "clock of this machine shows",
    "a broken chain": "has no certificate in PEM",
    "an empty chain": "has no certificate in PEM",
    "a broken key": "is not a private key in PEM",
    "files exchanged": "has no certificate in PEM",
    "no roots": "has no certificate in PEM",
    "absent": "cannot be read",
}


@pytest.mark.parametrize("name", BROKEN)
def test_certificates_that_cannot_be_used_are_named(files, name):
    broken(files, name)
    with pytest.raises(FileError) as failed:
        read_certificates(*files)
    assert BROKEN[name] in str(failed.value)


@pytest.mark.parametrize("name", BROKEN)
def test_a_reload_that_fails_keeps_the_old_and_one_that_works_does_not(files, name, caplog, monkeypatch):
    watched = watched_certificates(*files)
    now_s = [1e9]
    monkeypatch.setattr(watched, "_clock", lambda: now_s[0])
    before = watched.look()
    broken(files, name)
    now_s[0] += LOOK_S
    assert watched.look() is before
    assert BROKEN[name] in caplog.text
    for path, content in zip(files, (*Authority().issue(), Authority().pem), strict=True):
        path.write_bytes(content)
    now_s[0] += LOOK_S
    assert watched.look().chain == files[0].read_bytes()


def test_a_private_key_is_for_its_owner_alone_and_is_not_overwritten(tmp_path):
    path = tmp_path / "key.pem"
    ISSUER.write(path)
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(FileError, match="cannot be written"):
        Issuer().write(path)
    assert Issuer.read(path).public_key() == PUBLIC
