from django.db import migrations, models
from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce


def from_the_audit_log(apps, schema_editor):
    """Name who issued each token, if the audit log does."""
    alias = schema_editor.connection.alias
    entries = apps.get_model("toolbelt", "AuditEntry").objects.using(alias)
    issued = entries.filter(action="token.issue", subject_kind="token", subject_key=OuterRef("prefix"))
    actor = Coalesce(Subquery(issued.order_by("-id").values("actor")[:1]), models.Value(""))
    apps.get_model("toolbelt", "ApiToken").objects.using(alias).update(issued_by=actor)


class Migration(migrations.Migration):

    dependencies = [
        ("toolbelt", "0030_what_processes_see"),
    ]

    operations = [
        migrations.AddField(
            model_name="apitoken",
            name="issued_by",
            field=models.CharField(
                blank=True,
                help_text="Who issued the token, as in the audit log. Empty: not known.",
                max_length=150,
            ),
        ),
        migrations.RunPython(from_the_audit_log, migrations.RunPython.noop),
    ]
