"""The settings of the log of a cluster: those of nodes, and of the commands that use the log itself."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from feeds.parameters import ExistingFile, Shown

_SCHEMES = ("nats://", "tls://")


class LogSettings(BaseSettings):
    """The servers of the log, how to reach them, and what they have to promise.

    Every field can be set by a flag, by an environment variable `NEARCAST_<FIELD>`, or in a TOML file.
    Its description has neither default nor bounds nor unit: the help adds them.
    """

    model_config = SettingsConfigDict(
        env_prefix="NEARCAST_",
        extra="forbid",
        frozen=True,
        # A rule across settings would show all of them, secrets included.
        hide_input_in_errors=True,
    )

    log: Annotated[str, Shown(metavar="nats://...[,nats://...]", is_secret=True)] = Field(
        "",
        description="Servers of a replicated log, NATS with JetStream, which all nodes of a cluster "
        "have in common. With tls:// addresses, nothing is sent without TLS. Without a log, a server is "
        "by itself.",
    )
    log_ca: ExistingFile | None = Field(
        None,
        description="Root certificates of the servers of the log and of their monitoring ports, PEM; "
        "without them, those of this machine.",
    )
    log_cert: ExistingFile | None = Field(
        None, description="Certificate of this node for the servers of the log, PEM."
    )
    log_key: ExistingFile | None = Field(None, description="Private key of that certificate, PEM.")
    log_credentials: ExistingFile | None = Field(
        None, description="Credentials for the servers of the log: a .creds file of NATS."
    )
    log_user: str = Field("", description="User at the servers of the log.")
    log_password_file: ExistingFile | None = Field(None, description="File with the user's password.")
    log_token_file: ExistingFile | None = Field(
        None, description="File with a token for the servers of the log."
    )
    log_monitor: Annotated[str, Shown(metavar="http(s)://...,...")] = Field(
        "",
        description="Monitoring ports of all servers of the log, where the node reads whether they sync "
        "each append to the disk.",
    )
    log_stream: str = Field(
        "nearcast",
        pattern=r"^[A-Za-z0-9_-]{1,32}$",
        description="Name of the stream of the log, which the first node makes.",
    )
    log_replicas: int = Field(
        3,
        ge=1,
        le=5,
        description="Number of servers that have the log on disk before a publication is acknowledged; "
        "with 1 it is durable on one disk only.",
    )
    log_unsafe: bool = Field(
        False,
        description="Use the log even if it may lose acknowledged objects in a power cut, to try it out.",
    )

    @field_validator("log")
    @classmethod
    def _know_log(cls, value: str) -> str:
        found = value.split(",")
        if value and not any(all(one.startswith(scheme) for one in found) for scheme in _SCHEMES):
            raise ValueError("must be nats://host:port or tls://host:port, or several between commas")
        return value

    @model_validator(mode="after")
    def _keep_log_access(self) -> LogSettings:
        has_tls = self.log.startswith("tls://") or "https://" in self.log_monitor
        if self.log_ca is not None and not has_tls:
            raise ValueError("log_ca needs --log with tls:// addresses, or --log-monitor with https://")
        if self.log_cert is not None and self.log_key is None:
            raise ValueError("log_cert needs --log-key: they must be given together")
        if self.log_key is not None and self.log_cert is None:
            raise ValueError("log_key needs --log-cert: they must be given together")
        if bool(self.log_user) != (self.log_password_file is not None):
            raise ValueError("log_user needs --log-password-file, and the other way round")
        if sum(map(bool, (self.log_credentials, self.log_user, self.log_token_file))) > 1:
            raise ValueError("log_credentials must not be set with --log-user or --log-token-file")
        return self
