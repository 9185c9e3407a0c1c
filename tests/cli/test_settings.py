"""Settings: flags, variables, file, help and documentation come from one declaration."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner
from pydantic import ValidationError

from cli import settings_reference
from cli.options import facts_of, gateway_settings
from cli.serve import serve
from index.catalogue import KINDS
from server.settings import ServerSettings, load_settings

PAGE = Path(__file__).resolve().parents[2] / "docs" / "configuration.md"
FIELDS = ServerSettings.model_fields
AREA = "14,35,15,36"
FLAGS = {"tokens": "--dev-token", "tenants": "--tenant"}
LISTS = tuple(FLAGS)
SWITCHES = ("virtual_time", "insecure", "create", "accept_loss", "reflection", "log_unsafe")

TEXTS = {
    "host": "127.0.0.2",
    "area": "1,2,3,4",
    "store": "elsewhere.db",
    "create": "true",
    "accept_loss": "true",
    "reflection": "true",
    "virtual_time": "true",
    "source": "messages",
    "sink": "redis://127.0.0.1:6379/0/feed",
    "buffer_extra": "7",
    "stationary_buffer": "kmax",
    "subscription_index": "naive",
    "object_index": "naive",
    "clause_index": "naive",
    "moving_index": "naive",
    "tokens": '["a", "b"]',
    "tls_certificate": __file__,
    "tls_key": __file__,
    "tls_client_roots": __file__,
    "tls_node_roots": __file__,
    "jwks": __file__,
    "token_audience": "others",
    "token_issuer": "https://id.example",
    "tenants": '["acme", "other"]',
    "insecure": "true",
    "metrics_host": "127.0.0.2",
    "trace_endpoint": "http://elsewhere:4318/v1/traces",
    "log": "nats://elsewhere:4222",
    "log_ca": __file__,
    "log_cert": __file__,
    "log_key": __file__,
    "log_credentials": __file__,
    "log_user": "node",
    "log_password_file": __file__,
    "log_token_file": __file__,
    "log_monitor": "http://elsewhere:8222",
    "log_stream": "others",
    "log_unsafe": "true",
    "advertise": "elsewhere:7433",
    "log_format": "json",
    "log_level": "DEBUG",
}
"""Something that is no default, as a variable says it; of numbers the test finds one itself."""


@pytest.fixture(autouse=True)
def _no_variables(monkeypatch):
    for name in FIELDS:
        monkeypatch.delenv(f"NEARCAST_{name.upper()}", raising=False)


def sample(name):
    kind = FIELDS[name].annotation
    return TEXTS.get(name) or ("0.5" if kind is float else str(bound(name, "ge") + 1))


def bound(name, side):
    """The least or most that a number may be; None if there is no such bound."""
    return next((getattr(one, side) for one in FIELDS[name].metadata if hasattr(one, side)), None)


NUMBERS = [name for name, field in FIELDS.items() if field.annotation in (int, float)]


def flag(name):
    return FLAGS.get(name, f"--{name.replace('_', '-')}")


def arguments(name):
    if name in SWITCHES:
        return [flag(name)]
    values = json.loads(sample(name)) if name in LISTS else [sample(name)]
    return [f"{flag(name)}={value}" for value in values]


def parsed(*given):
    """Settings as `serve` would take them from a command line."""
    values = serve.make_context("serve", list(given)).params
    config = values.pop("config")
    return load_settings({key: value for key, value in values.items() if value not in (None, ())}, config)


def needed(name):
    """Flags that go with a setting: of the area, and of what it is nothing without."""
    without = {
        "tls_certificate": ("tls_key",),
        "tls_key": ("tls_certificate",),
        "tls_client_roots": ("tls_certificate", "tls_key"),
        "tls_node_roots": ("tls_certificate", "tls_key"),
        "tenants": ("jwks",),
        "log_cert": ("log_key",),
        "log_key": ("log_cert",),
        "log_user": ("log_password_file",),
        "log_password_file": ("log_user",),
    }
    others = [one for other in without.get(name, ()) for one in arguments(other)]
    others += ["--log=tls://elsewhere"] if name == "log_ca" else []
    return [*others, *([] if name == "area" else [f"--area={AREA}"])]


@pytest.mark.parametrize("name", FIELDS)
def test_flag_variable_and_file_mean_the_same(name, monkeypatch, tmp_path):
    default = None if name == "area" else getattr(load_settings({"area": AREA}), name)
    by_flag = getattr(parsed(*arguments(name), *needed(name)), name)
    assert by_flag != default
    config = tmp_path / "city.toml"
    written = sample(name) if name in (*SWITCHES, *LISTS) else f'"{sample(name)}"'
    config.write_text(f"{name} = {written}\n")
    assert getattr(parsed(f"--config={config}", *needed(name)), name) == by_flag
    monkeypatch.setenv(f"NEARCAST_{name.upper()}", sample(name))
    assert getattr(parsed(*needed(name)), name) == by_flag


def test_a_flag_switches_off_a_variable(monkeypatch):
    monkeypatch.setenv("NEARCAST_VIRTUAL_TIME", "true")
    assert parsed(f"--area={AREA}").virtual_time
    assert not parsed(f"--area={AREA}", "--no-virtual-time").virtual_time


def shown(name):
    """What the help says of a setting."""
    (option,) = [one for one in serve.get_params(serve.make_context("serve", [])) if one.name == name]
    assert option.opts == [flag(name)]
    return option.help


def default_text(name):
    """What is so if nothing is said, as people write it."""
    if name == "area":
        return "required"
    real, virtual = (
        getattr(load_settings({"area": AREA, "virtual_time": is_virtual}), name)
        for is_virtual in (False, True)
    )
    if isinstance(real, bool):
        return "off"
    if real in (None, (), ""):
        return "none"
    text = f"{real:.15g}" if isinstance(real, float) else str(real)
    return text if virtual == real else f"{text}, in virtual time {virtual:g}"


@pytest.mark.parametrize("name", FIELDS)
def test_the_help_has_default_and_variable(name):
    label = "" if name == "area" else "default: "
    assert f"  [{label}{default_text(name)}; " in shown(name)
    note = ", a JSON list" if name in LISTS else ""
    assert shown(name).endswith(f"; env var: NEARCAST_{name.upper()}{note}]")


@pytest.mark.parametrize("name", NUMBERS)
def test_the_help_has_bounds_and_unit(name):
    least, most = bound(name, "ge"), bound(name, "le")
    text = f"at least {least:.15g}" if most is None else f"{least:.15g} to {most:.15g}"
    units = {
        "_ms": "milliseconds",
        "_m_max": "metres",
        "_mps": "metres a second",
        "_days": "days",
        "_hours": "hours",
        "_s": "seconds",
        "_rate": "a second",
    }
    unit = "".join(f" {unit}" for suffix, unit in units.items() if name.endswith(suffix))
    assert f"; {text}{unit}; " in shown(name)
    for value in (least, most if most is not None else least):
        assert getattr(load_settings({"area": AREA, name: str(value)}), name) == value
    for value in (least - 1, least if most is None else most + 1):
        if value != least:
            with pytest.raises(ValidationError):
                load_settings({"area": AREA, name: str(value)})


def test_the_help_has_the_choices():
    for kind in KINDS.values():
        assert shown(kind.setting).startswith(f"Index of {kind.name}: {kind.what}")
        assert "; others: `nearcast indexes`.  [default: " in shown(kind.setting)
    assert "; auto or 0 to 1000; " in shown("buffer_extra")


def test_the_help_has_every_setting():
    done = CliRunner().invoke(serve, ["--help"])
    assert done.exit_code == 0
    flags = re.findall(r"^  (?:-h, )?(--[a-z-]+)", done.output, re.MULTILINE)
    assert flags == ["--config", *(flag(name) for name in facts_of(ServerSettings)), "--help"]


def test_the_documentation_is_generated_from_the_declaration():
    assert PAGE.read_text() == settings_reference.page(), "run make configuration and commit"


def documented(heading="## The server"):
    """Return the rows of a program's table by flag."""
    _, _, rest = PAGE.read_text().partition(f"{heading}\n")
    text, _, _ = rest.partition("\n## ")
    table = re.findall(r"^\| `(--[^|]*)` \|(.*)\|$", text, re.MULTILINE)
    return {flags.split("`")[0]: [cell.strip() for cell in row.split("|")] for flags, row in table}


def test_the_documentation_has_every_setting():
    assert sorted(documented()) == sorted(flag(name) for name in FIELDS)


def test_the_documentation_has_every_setting_of_the_gateway():
    rows = documented("## The gateway")
    facts = facts_of(gateway_settings()).values()
    assert set(rows) == {one.flag for one in facts}
    for one in facts:
        variable, key, *_, meaning = rows[one.flag]
        assert variable.startswith(f"`{one.variable}`")
        assert (key, meaning) == (f"`{one.name}`", one.description)


@pytest.mark.parametrize("name", FIELDS)
def test_the_documentation_is_true(name):
    variable, key, default, _, meaning = documented()[flag(name)]
    assert variable.startswith(f"`NEARCAST_{name.upper()}`")
    assert key == f"`{name}`"
    assert default.replace("`", "") == default_text(name)
    assert meaning
