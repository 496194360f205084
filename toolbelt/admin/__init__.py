"""Django's admin: lists and forms for everything that is stored.

Like the other interfaces, the admin writes configuration through ``control``, as entries of a belt, and never saves
rows itself. Each change is therefore checked by the same rules, compared with what its editor saw, and recorded.

The state of plugins (PluginState) is left out, because it may contain private data of their users. So are the tables of
the authorization server, of the sign-in with a provider, and of second factors: their own pages would change them
without a check and without an entry in the audit log.
"""

from django.apps import apps
from django.contrib import admin

from toolbelt.admin import (  # noqa: F401 - they register themselves
    agent_sessions,
    agents,
    alerts,
    audit,
    bundles,
    call_records,
    catalog,
    gate_rules,
    people,
    tokens,
)

for app in ("oauth2_provider", "account", "mfa", "socialaccount"):
    for model in apps.all_models[app].values():
        if admin.site.is_registered(model):
            admin.site.unregister(model)

admin.site.site_header = "Toolbelt"
admin.site.site_title = "Toolbelt"
admin.site.index_title = "Stored data"
