"""Toolbelt's system checks, for `manage.py check` and `check --deploy`."""

import os
from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks

from toolbelt import conf
from toolbelt.core import addresses

_TEST_CLIENT = "testserver"
# The tag of Toolbelt's own checks: those that a command runs before it does anything.
OWN = "toolbelt"


@checks.register(OWN)
def settings_are_sound(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    return [
        checks.Error(
            f"{name} should be {expected}.",
            hint=f"Correct {name} in the environment or the settings file, or unset it for its default.",
            id="toolbelt.E001",
        )
        for name, expected in conf.invalid_settings()
    ]


@checks.register(OWN)
def sign_in_is_complete(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    needed = {"CLIENT_ID": conf.SIGN_IN_CLIENT_ID, "CLIENT_SECRET": conf.SIGN_IN_CLIENT_SECRET}
    missing = [f"TOOLBELT_SIGN_IN_{name}" for name, value in needed.items() if not value]
    if not conf.SIGN_IN_ISSUER or not missing:
        return []
    return [
        checks.Error(
            f"TOOLBELT_SIGN_IN_ISSUER needs {' and '.join(missing)}.",
            hint="Register Toolbelt with the provider, and set what it shows, or unset TOOLBELT_SIGN_IN_ISSUER.",
            id="toolbelt.E002",
        )
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


@checks.register(checks.Tags.security, OWN)
def hosts_are_names(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    unusable = [host for host in settings.ALLOWED_HOSTS if host != "*" and not addresses.is_host_name(host)]
    if not unusable:
        return []
    return [
        checks.Warning(
            f"ALLOWED_HOSTS contains {', '.join(unusable)}, which no request matches.",
            hint="Write host names only, such as toolbelt.example.com: without https://, port and path.",
            id="toolbelt.W008",
        )
    ]


@checks.register(checks.Tags.security, OWN)
def public_hosts_are_in_production(
    app_configs: Sequence[AppConfig] | None, **kwargs: Any
) -> list[checks.CheckMessage]:
    public = [
        host
        for host in settings.ALLOWED_HOSTS
        if not (addresses.is_this_machine(host) or host == _TEST_CLIENT)
    ]
    if settings.ENVIRONMENT == "production" or not public:
        return []
    return [
        checks.Warning(
            f"TOOLBELT_ENV is {settings.ENVIRONMENT}, and Toolbelt answers at {', '.join(public)}: it is served over"
            f" plain HTTP{', and error pages show its settings and code' if settings.DEBUG else ''}.",
            hint="Set TOOLBELT_ENV to production, or ALLOWED_HOSTS to this machine: localhost,127.0.0.1,[::1].",
            id="toolbelt.W009",
        )
    ]


@checks.register(OWN)
def variables_are_known(app_configs: Sequence[AppConfig] | None, **kwargs: Any) -> list[checks.CheckMessage]:
    return [
        checks.Warning(
            f"There is no setting {variable}: it has no effect.",
            hint=f"Did you mean {meant}? Correct the name in the environment or the settings file.",
            id="toolbelt.W010",
        )
        for variable, meant in conf.misspelled_variables(os.environ)
    ]
