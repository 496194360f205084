from django.db import migrations
from django.db.models import F, Value
from django.db.models.functions import Replace

# Lists, and the values of their filters, that have other names now: (earlier, later).
PAGE = ("changes", "audit_log")
FILTERS = {"tools": ("state=stopped", "state=blocked"), "toolkits": ("show=stopped", "show=blocked")}


def _rename(apps, database, earlier, later):
    views = apps.get_model("toolbelt", "SavedView").objects.using(database)
    views.filter(page=PAGE[earlier]).update(page=PAGE[later])
    for page, values in FILTERS.items():
        text, replacement = Value(values[earlier]), Value(values[later])
        views.filter(page=page).update(query=Replace(F("query"), text, replacement))


def forwards(apps, schema_editor):
    _rename(apps, schema_editor.connection.alias, 0, 1)


def backwards(apps, schema_editor):
    _rename(apps, schema_editor.connection.alias, 1, 0)


class Migration(migrations.Migration):

    dependencies = [
        ("toolbelt", "0027_help_texts_of_states"),
    ]

    operations = [
        migrations.RunPython(forwards, backwards),
    ]
