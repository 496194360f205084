"""How does an operator see and edit everything that is stored, in Django's admin?

A shell like the others: what is configured is written through ``control``, as entries of a belt, never by saving
rows. So it is checked by the same rules, compared with what its writer saw, and recorded.

What plugins remember (PluginState) is left out: it is theirs, and may hold what is private to those who use them.
"""

from django.contrib import admin

from toolbelt.admin import agents, audit, bundles, calls, catalog, sessions, tokens  # noqa: F401 - they register themselves

admin.site.site_header = "Toolbelt"
admin.site.site_title = "Toolbelt"
admin.site.index_title = "Stored data"
