"""Which page or act does each address of the dashboard mean?"""

from django.urls import converters, path, register_converter

from toolbelt.web.views import access, agents, changes, login, switches

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
    path("agents/<name:agent>/switches/<name:toolkit>/", switches.switch, name="switch"),
    path("agents/<name:agent>/overrides/<name:tool>/", switches.override, name="override"),
    path("agents/<name:agent>/reset/", switches.reset, name="reset"),
    path("changes/", changes.listing, name="changes"),
    path("changes/<int:entry>/undo/", changes.undo, name="undo"),
]
