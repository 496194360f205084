from django.db import migrations


def end(apps, schema_editor):
    """End logins from before logins had rows: nothing that ends the logins of a person would find them."""
    alias = schema_editor.connection.alias
    known = apps.get_model('toolbelt', 'Login').objects.using(alias).values('session_key')
    apps.get_model('sessions', 'Session').objects.using(alias).exclude(session_key__in=known).delete()


class Migration(migrations.Migration):

    dependencies = [
        ('toolbelt', '0069_self_checks'),
        ('sessions', '0001_initial'),
    ]

    operations = [
        migrations.RunPython(end, migrations.RunPython.noop),
    ]
