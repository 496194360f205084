"""What happens once when Toolbelt starts?"""

from django.apps import AppConfig


class ToolbeltConfig(AppConfig):
    name = "toolbelt"
    verbose_name = "Toolbelt"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Imported here, because checks and receivers need the models, and those need the app registry.
        from toolbelt import checks  # noqa: F401
        from toolbelt.control import plugins as operators_door
        from toolbelt.control import roles
        from toolbelt.control import upstreams as upstreams_door
        from toolbelt.runtime import code_toolkits, plugins, upstream_news, upstreams
        from toolbelt.store import receivers, snapshots
        from toolbelt.web import request_ids

        receivers.connect()
        roles.connect()
        request_ids.connect()
        code_toolkits.connect()
        # The two doors do not know each other: what one finds out, the other writes down.
        plugins.tell(operators_door.found_broken)
        upstream_news.tell(upstreams_door.heard)
        snapshots.watch(upstreams.attend)
