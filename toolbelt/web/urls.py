"""Which page or act does each address of the dashboard mean?"""

from django.urls import converters, path, register_converter

from toolbelt.web.views import (
    access,
    agents,
    calls,
    changes,
    history,
    login,
    matrix,
    plugin,
    plugins,
    preview,
    sessions,
    settings,
    switches,
    tokens,
    toolkits,
    tools,
)

app_name = "web"


class Name(converters.StringConverter):
    """A name in an address. Not with NUL in it: PostgreSQL cannot even be asked for that."""

    regex = r"[^/\x00]+"


register_converter(Name, "name")

urlpatterns = [
    path("", agents.home, name="home"),
    path("login/", login.Login.as_view(), name="login"),
    path("logout/", login.Logout.as_view(), name="logout"),
    path("agents/", agents.listing, name="agents"),
    path("agents/<name:agent>/", access.page, name="agent_access"),
    path("agents/<name:agent>/directive/", access.directive, name="directive"),
    path("agents/<name:agent>/preview/", preview.page, name="preview"),
    path("agents/<name:agent>/sessions/", sessions.page, name="sessions"),
    path("agents/<name:agent>/sessions/evict/", sessions.evict, name="evict"),
    path("agents/<name:agent>/history/", history.page, name="history"),
    path("agents/<name:agent>/settings/", settings.page, name="settings"),
    path("agents/<name:agent>/settings/change/", settings.change, name="change_settings"),
    path("agents/<name:agent>/duplicate/", settings.duplicate, name="duplicate"),
    path("agents/<name:agent>/switches/<name:toolkit>/", switches.switch, name="switch"),
    path("agents/<name:agent>/overrides/<name:tool>/", switches.override, name="override"),
    path("agents/<name:agent>/reset/", switches.reset, name="reset"),
    path("matrix/", matrix.page, name="matrix"),
    path("toolkits/", toolkits.listing, name="toolkits"),
    path("toolkits/<name:toolkit>/", toolkits.page, name="toolkit"),
    path("toolkits/<name:toolkit>/stop/", toolkits.stop, name="stop_toolkit"),
    path("tools/", tools.listing, name="tools"),
    path("tools/<name:tool>/", tools.page, name="tool"),
    path("tools/<name:tool>/stop/", tools.stop, name="stop_tool"),
    path("calls/", calls.listing, name="calls"),
    path("changes/", changes.listing, name="changes"),
    path("changes/<int:entry>/undo/", changes.undo, name="undo"),
    path("plugins/", plugins.listing, name="plugins"),
    path("plugins/add/", plugins.add, name="add_server"),
    path("plugins/add/save/", plugins.save, name="save_server"),
    path("plugins/<name:plugin>/", plugin.page, name="plugin"),
    path("plugins/<name:plugin>/review/", plugin.review, name="review_plugin"),
    path("plugins/<name:plugin>/connection/", plugin.reconnect, name="reconnect_plugin"),
    path("plugins/<name:plugin>/refresh/", plugins.refresh_one, name="refresh_plugin"),
    path("plugins/<name:plugin>/switch/", plugins.switch, name="switch_plugin"),
    # Not under plugins/, where it would be the page of a plugin called so.
    path("refresh/", plugins.refresh, name="refresh_plugins"),
    path("tokens/", tokens.listing, name="tokens"),
    path("tokens/issue/", tokens.issue, name="issue_token"),
    path("tokens/<name:token>/revoke/", tokens.revoke, name="revoke_token"),
]
