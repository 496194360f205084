from django.db import migrations, models

_REJECTED = "rejected:"


def mark_rejected(apps, schema_editor):
    """Mark the versions that an operator rejected before rejections were marked, so that unblocking such a tool has it
    reviewed again.

    A rejection blocked the tool and took over its version in one change. A tool counts only if that is still the newest
    change of either field. What an import wrote is left out: it may also describe an approved tool that is blocked.
    """
    tools = apps.get_model("toolbelt", "Tool").objects.filter(blocked=True, approved__startswith="sha256:")
    entries = apps.get_model("toolbelt", "AuditEntry").objects.filter(subject_kind="tool")
    for tool in tools:
        for entry in entries.filter(subject_key=tool.key).order_by("-id").iterator():
            before, after = (side if isinstance(side, dict) else {} for side in (entry.before, entry.after))
            if {"approved", "blocked"}.isdisjoint({*before, *after}):
                continue
            if (
                entry.action == "tool.change"
                and entry.via != "import"
                and after.get("blocked") is True
                and not before.get("blocked")
                and after.get("approved") == tool.approved != before.get("approved")
            ):
                tool.approved = _REJECTED + tool.approved
                tool.save(update_fields=["approved"])
            break


class Migration(migrations.Migration):

    dependencies = [
        ('toolbelt', '0025_context_use'),
    ]

    operations = [
        migrations.AlterField(
            model_name='tool',
            name='approved',
            field=models.CharField(blank=True, help_text='The hash of the version that an operator approved. Prefixed with rejected: if it was rejected. Empty: any version.'),
        ),
        migrations.RunPython(mark_rejected, migrations.RunPython.noop),
    ]
