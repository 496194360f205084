"""The Django app, and what happens once when it starts."""

from django.apps import AppConfig


class ToolbeltConfig(AppConfig):
    name = "toolbelt"
    verbose_name = "Toolbelt"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Imported here, because checks and receivers need the models, and those need the app registry.
        from toolbelt import checks, processes  # noqa: F401
        from toolbelt.control.agents import connection_cleanup
        from toolbelt.control.people import roles
        from toolbelt.store import receivers
        from toolbelt.web.kit import preferences, request_ids

        receivers.connect()
        roles.connect()
        request_ids.connect()
        preferences.connect()
        connection_cleanup.connect()
        processes.RUNTIME.connect()
