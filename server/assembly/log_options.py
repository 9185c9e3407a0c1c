"""The settings of the log, as `cluster.jetstream` needs them."""

from __future__ import annotations

from cluster.access import LogAccess
from cluster.jetstream import JetStreamOptions
from server.log_settings import LogSettings


def log_options(settings: LogSettings) -> JetStreamOptions:
    """Return the settings of the log for `cluster.jetstream`."""
    access = LogAccess(
        settings.log_ca,
        settings.log_cert,
        settings.log_key,
        settings.log_credentials,
        settings.log_user,
        settings.log_password_file,
        settings.log_token_file,
    )
    monitors = [one for one in settings.log_monitor.split(",") if one]
    return JetStreamOptions(
        settings.log.split(","),
        monitors,
        settings.log_stream,
        settings.log_replicas,
        settings.log_unsafe,
        access,
    )
