from __future__ import annotations

from typing import Any

import django.utils.timezone
from django.db import migrations, models

import toolbelt.models.fields


def begin_the_chain(apps: Any, schema_editor: Any) -> None:
    """Count what was written until now as logged: nothing says what was not."""
    revisions = apps.get_model("toolbelt", "Revision").objects.using(schema_editor.connection.alias)
    revisions.update(logged=models.F("number"))


class Migration(migrations.Migration):
    dependencies = [
        ('toolbelt', '0050_address_of_servers'),
    ]

    operations = [
        migrations.AddField(
            model_name='auditentry',
            name='revision',
            field=models.BigIntegerField(blank=True, help_text='The number of the last write of configuration, with this change. Empty: it was not recorded yet.', null=True),
        ),
        migrations.AddField(
            model_name='auditentry',
            name='unlogged',
            field=toolbelt.models.fields.JSONText(blank=True, help_text='What was written without the log before this change: the revision since which, whether the catalog was written, and the agents that were. Empty: nothing.', null=True, shape='any'),
        ),
        migrations.AddField(
            model_name='revision',
            name='logged',
            field=models.BigIntegerField(db_default=0, help_text='The number of the last write that Toolbelt made itself, with its audit log. 0: none yet.'),
        ),
        migrations.AlterField(
            model_name='agentsession',
            name='changed',
            field=models.DateTimeField(default=django.utils.timezone.now),
        ),
        migrations.AddField(
            model_name='callrecord',
            name='chosen_fields',
            field=toolbelt.models.fields.JSONText(blank=True, help_text='The arguments that an operator chose to record, by their paths. Empty: none are chosen, or they are too large.', null=True, shape='object'),
        ),
        migrations.AddField(
            model_name='callrecord',
            name='detail',
            field=models.CharField(blank=True, help_text='What a call of load_tools or unload_tools named, and the status of the answer. Empty: another tool.', max_length=200, null=True),
        ),
        migrations.AddField(
            model_name='tool',
            name='recorded_fields',
            field=toolbelt.models.fields.JSONText(blank=True, db_default=models.Value('[]'), default=list, help_text='The arguments that records of calls keep, by their paths, such as amount or to.domain.', shape='array'),
        ),
        migrations.RunPython(begin_the_chain, migrations.RunPython.noop),
    ]
