"""The Django app, and what happens once when it starts."""

from django.apps import AppConfig


class ToolbeltConfig(AppConfig):
    name = "toolbelt"
    verbose_name = "Toolbelt"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        # Imported here, because checks and receivers need the models, and those need the app registry.
        from toolbelt import checks  # noqa: F401
        from toolbelt.control.agents import connection_cleanup
        from toolbelt.control.people import roles
        from toolbelt.control.servers import client_plugins, elicitation, running_tools, upstream_servers
        from toolbelt.control.servers import plugins as listed_plugins
        from toolbelt.runtime import code_toolkits, connection, plugins, process_problems
        from toolbelt.runtime.records import learning
        from toolbelt.runtime.upstream import process_connections, server_notifications
        from toolbelt.store import receivers, snapshots
        from toolbelt.web.kit import preferences, request_ids

        receivers.connect()
        roles.connect()
        request_ids.connect()
        preferences.connect()
        code_toolkits.register()
        learning.register()
        connection_cleanup.connect()
        # `runtime` and `control` do not import each other: register the functions of one that the other calls.
        running_tools.register(plugins.runnable, process_problems.find)
        plugins.set_listener(listed_plugins.record_failure)
        server_notifications.register(upstream_servers.record_unsolicited)
        server_notifications.set_question_listener(elicitation.request_review)
        connection.set_declare(client_plugins.declare_from_program)
        connection_cleanup.listen(process_connections.close_claimed)
        snapshots.watch(process_connections.apply_catalog)
