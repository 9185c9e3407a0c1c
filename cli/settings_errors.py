"""Error messages for wrong settings: a line for each, with its source, its value and its limits."""

from __future__ import annotations

import difflib
import json
import os
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args, get_origin

from cli.failures import WrongUseError
from cli.options import Facts, facts_of

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails
    from pydantic_settings import BaseSettings

_KINDS = {"int": "a whole number", "float": "a number", "bool": "true or false", "str": "a text"}
_VALUE_LENGTH_MAX = 80
_AREA_NEEDED = (
    "the area is missing: give --area WEST,SOUTH,EAST,NORTH in degrees, such as "
    "--area 14.18,35.80,14.58,36.09, or {variable}, or {name} in the file of --config"
)


class _Given(NamedTuple):
    """Sources of settings.

    Parameters
    ----------
    flags
        Flags by field.
    config
        Configuration file, if there is one.
    entries
        Entries of the file.
    facts
        Facts about all settings, by field.
    model
        The declaration of the settings.
    """

    flags: dict[str, Any]
    config: Path | None
    entries: dict[str, Any]
    facts: dict[str, Facts]
    model: type[BaseSettings]

    def label(self, name: str) -> str:
        """Return the name of a setting in its source; its flag if the user did not set it."""
        facts = self.facts[name]
        if name in self.flags:
            return facts.flag
        variable = next((one for one in os.environ if one.upper() == facts.variable), None)
        if variable is not None:
            return variable
        return f"{name} in {self.config}" if name in self.entries else facts.flag

    def labelled(self, message: str) -> str:
        """Return a message that starts with a field, with the field replaced by its label."""
        name, blank, rest = message.partition(" ")
        return f"{self.label(name)}{blank}{rest}" if name in self.facts else message


def require_no_password(flags: dict[str, Any]) -> None:
    """Refuse a password or token on the command line, in the address of the log."""
    if "@" in flags.get("log", ""):
        raise WrongUseError(
            "--log must have no password or token: others on this machine can see it; "
            "put it into a file, --log-password-file or --log-token-file, or set NEARCAST_LOG"
        )


def read_settings(
    model: type[BaseSettings],
    flags: dict[str, Any],
    config: Path | None,
    *,
    reads_environment: bool = True,
) -> Any:  # noqa: ANN401
    """Combine flags, environment variables and the configuration file into settings.

    Parameters
    ----------
    model
        The declaration of the settings.
    flags
        Values of flags by field.
    config
        Configuration file, if there is one.
    reads_environment
        Whether environment variables count.

    Raises
    ------
    WrongUseError
        If a setting or the file is wrong.
    """
    from pydantic import ValidationError  # noqa: PLC0415
    from pydantic_settings.exceptions import SettingsError  # noqa: PLC0415

    from identity.settings import combined  # noqa: PLC0415

    given = _given(model, flags, config)
    try:
        return combined(model, flags, config, reads_environment=reads_environment)
    except ValidationError as error:
        raise WrongUseError("\n".join(_lines(error, given))) from None
    except SettingsError:  # a variable that must be JSON and is not
        raise WrongUseError("\n".join(_lists_that_are_none(given))) from None


def labelled(model: type[BaseSettings], message: str, flags: dict[str, Any], config: Path | None) -> str:
    """Return an error message of the start, with its leading field replaced by the setting's label."""
    return _given(model, flags, config).labelled(message)


def _given(model: type[BaseSettings], flags: dict[str, Any], config: Path | None) -> _Given:
    entries = {} if config is None else _entries(config)
    return _Given(flags, config, entries, facts_of(model), model)


def _entries(config: Path) -> dict[str, Any]:
    text = ""
    try:
        text = config.read_text(encoding="utf-8")
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        # The parser notices an unclosed bracket at the end.
        end = f"at the end, line {len(text.splitlines())}"
        reason = str(error).replace("at end of document", end)
        raise WrongUseError(f"{config} is not TOML: {reason[:1].lower()}{reason[1:]}") from None
    except UnicodeDecodeError as error:
        line = error.object.count(b"\n", 0, error.start) + 1
        raise WrongUseError(f"{config} is not UTF-8 text (at line {line})") from None
    except OSError as error:
        raise WrongUseError(f"{config} cannot be read: {error.strerror}") from None


def _lines(error: ValidationError, given: _Given) -> list[str]:
    # Defaults that depend on another setting cannot be computed if that setting is wrong.
    errors = [one for one in error.errors() if one["type"] != "default_factory_not_called"]
    return [_line(one, given) for one in errors]


def _line(error: ErrorDetails, given: _Given) -> str:
    message = str(error["ctx"]["error"]) if error["type"] == "value_error" else error["msg"]
    if not error["loc"]:
        return given.labelled(message)
    name = str(error["loc"][0])
    if name not in given.facts:
        close = difflib.get_close_matches(name.replace("-", "_"), given.facts, 1)
        guess = f": did you mean {close[0]!r}?" if close else ""
        return f"{given.config}: {name!r} is not a setting{guess}"
    facts = given.facts[name]
    if error["type"] == "missing":
        return _AREA_NEEDED.format(variable=facts.variable, name=name)
    if error["type"] == "value_error" and not message.startswith("must "):
        named = given.labelled(message)
        return named if named != message else f"{given.label(name)}: {message}"
    value = f" is {_shown(error['input'])}," if not facts.is_secret else ""
    limit = message if error["type"] == "value_error" else f"must be {_allowed(facts, given.model)}"
    return f"{given.label(name)}{value} {limit}"


def _allowed(facts: Facts, model: type[BaseSettings]) -> str:
    """Describe the allowed values of a setting."""
    kind = model.model_fields[facts.name].annotation
    if facts.is_list:
        return "texts: in a variable a JSON list of them, in the file a list"
    if get_origin(kind) is Literal:
        return f"one of {', '.join(get_args(kind))}"
    names = [_KINDS.get(getattr(one, "__name__", ""), "") for one in (kind, *get_args(kind))]
    parts = (next((one for one in names if one), ""), facts.limit)
    return ", ".join(part for part in parts if part) or "a path"


def _lists_that_are_none(given: _Given) -> list[str]:
    lines = []
    for facts in given.facts.values():
        text = next((text for one, text in os.environ.items() if one.upper() == facts.variable), None)
        if facts.is_list and text is not None and not _is_list(text):
            lines.append(f'{facts.variable} must be a JSON list of texts, such as ["one", "two"]')
    return lines


def _is_list(text: str) -> bool:
    try:
        return isinstance(json.loads(text), list)
    except ValueError:
        return False


def _shown(value: object) -> str:
    text = re.sub(r"\s+", " ", repr(value) if isinstance(value, str) else str(value))
    return text if len(text) <= _VALUE_LENGTH_MAX else f"{text[: _VALUE_LENGTH_MAX - 3]}..."
