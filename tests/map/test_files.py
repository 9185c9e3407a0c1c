"""The files of the page: how the gateway serves them, and the packages beside them."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from pathlib import Path

import pytest
from aiohttp import ClientSession

from gateway.settings import GatewaySettings
from tests.gateway.town import a_town, running
from tests.support.identity import token

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "gateway" / "map"
VENDOR = FOLDER / "vendor"
TYPESCRIPT = ROOT / "clients" / "typescript"


async def test_files_have_their_types_and_the_policy(tmp_path):
    async with a_town(tmp_path) as town:
        for path, content_type in (
            ("/map/", "text/html; charset=utf-8"),
            ("/map/main.js", "text/javascript; charset=utf-8"),
            ("/map/map.css", "text/css; charset=utf-8"),
            ("/map/icon.svg", "image/svg+xml; charset=utf-8"),
            ("/map/vendor/maplibre-gl.mjs", "text/javascript; charset=utf-8"),
        ):
            async with town.http.get(town.address(path)) as response:
                assert response.status == 200
                assert response.headers["Content-Type"] == content_type
                policy = response.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert "http" not in policy
                assert response.headers["X-Content-Type-Options"] == "nosniff"
                assert response.headers["Cache-Control"] == "no-cache"
                etag = response.headers["ETag"]
            async with town.http.get(town.address(path), headers={"If-None-Match": etag}) as response:
                assert response.status == 304


async def test_other_paths_are_not_found(tmp_path):
    async with a_town(tmp_path) as town:
        for path in ("/map/other.js", "/map/../map_pages.py", "/map/%2e%2e/main.py", "/map/vendor/"):
            async with town.http.get(town.address(path)) as response:
                assert response.status == 404, path
        for path, status in (("/map", 308), ("/", 307)):
            async with town.http.get(town.address(path), allow_redirects=False) as response:
                assert (response.status, response.headers["Location"]) == (status, "/map/")
        async with town.http.get(town.address("/map/base")) as response:
            assert response.status == 204


async def test_the_map_file_is_served_as_it_is_to_operators(tmp_path):
    path = tmp_path / "roads.geojson"
    path.write_text('{"type": "FeatureCollection", "features": []}')
    async with a_town(tmp_path, map_file=path) as town:
        for roles, status in (((), 401), (("publisher", "gateway"), 403), (("operator",), 200)):
            headers = {"Authorization": f"Bearer {token('somebody', *roles)}"} if roles else {}
            async with town.http.get(town.address("/map/base"), headers=headers) as response:
                assert response.status == status, roles
                assert (await response.read() == path.read_bytes()) == (status == 200)


async def test_without_tokens_the_map_file_is_served_to_all(tmp_path):
    path = tmp_path / "roads.geojson"
    path.write_text('{"type": "FeatureCollection", "features": []}')
    async with running(GatewaySettings(port=0, map_file=path)) as gateway, ClientSession() as http:
        address = f"http://127.0.0.1:{gateway.port}/map/base"
        async with http.get(address) as response:
            assert await response.read() == path.read_bytes()


async def test_pages_of_the_gateway_itself_may_call_and_others_may_not(tmp_path):
    async with a_town(tmp_path) as town:
        for origin, status in (
            (town.address(""), 401),  # allowed, but without a token
            (town.address("").replace("127.0.0.1", "localhost"), 401),
            (f"http://evil.example:{town.gateway.port}", 403),
            ("http://127.0.0.1:1", 403),
        ):
            headers = {"Origin": origin, "Host": origin.removeprefix("http://")}
            async with town.http.get(town.address("/v1/status"), headers=headers) as response:
                assert response.status == status, origin


def test_vendored_files_are_those_of_the_manifest():
    manifest = json.loads((VENDOR / "manifest.json").read_text())
    listed = {"manifest.json", *manifest["built"]["files"]}
    for package in manifest["packages"]:
        assert package["version"]
        assert package["licence"]
        for name, digest in package["files"].items():
            assert hashlib.sha256((VENDOR / name).read_bytes()).hexdigest() == digest, name
            listed.add(name)
    types = {path.name for path in VENDOR.glob("*.d.*ts")}
    assert {path.name for path in VENDOR.iterdir()} == listed | types


def tools():
    """Return node; skip the test if it or the packages are absent."""
    node = shutil.which("node")
    if node is None or not (TYPESCRIPT / "node_modules" / ".package-lock.json").exists():
        pytest.skip("needs Node.js and the packages of the TypeScript SDK: make client-packages")
    return node


@pytest.mark.processes
def test_the_bundle_of_the_sdk_is_up_to_date(tmp_path):
    path = tmp_path / "nearcast.js"
    subprocess.run([tools(), "scripts/map_bundle.mjs", path], cwd=TYPESCRIPT, check=True)
    assert path.read_bytes() == (VENDOR / "nearcast.js").read_bytes(), "run make map-bundle"


@pytest.mark.processes
def test_the_types_of_the_page_are_right():
    command = [tools(), "node_modules/typescript/bin/tsc", "-p", "tsconfig.map.json"]
    done = subprocess.run(command, cwd=TYPESCRIPT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
