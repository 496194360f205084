"""Toolbelt's system checks, for `manage.py check` and `check --deploy`."""

import os
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

from toolbelt import conf


@checks.register
def settings_are_sound(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    return [
        checks.Error(f"{name} should be {expected}.", id="toolbelt.E001")
        for name, expected in conf.invalid_settings()
    ]


@checks.register(checks.Tags.security, deploy=True)
def served_over_https(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    if not settings.INSECURE_HTTP:
        return []
    return [
        checks.Warning(
            "Toolbelt is served over plain HTTP: passwords and tokens can be intercepted.",
            hint="Set TOOLBELT_INSECURE_HTTP to off, or unset it, and serve over HTTPS.",
            id="toolbelt.W001",
        )
    ]


@checks.register(checks.Tags.security, deploy=True)
def proxies_are_named(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    if "*" not in os.environ.get("FORWARDED_ALLOW_IPS", "").split(","):
        return []
    return [
        checks.Warning(
            "FORWARDED_ALLOW_IPS is *, so every client can choose its own address and evade the login limits.",
            hint="Set FORWARDED_ALLOW_IPS to the addresses of the reverse proxies in front of Toolbelt.",
            id="toolbelt.W007",
        )
    ]
