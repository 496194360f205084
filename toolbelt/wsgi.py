"""What does a WSGI server run? The same application as `toolbelt.asgi`, for hosts that only speak WSGI."""

import os

from django.core import wsgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbelt.settings")

django = wsgi.get_wsgi_application()

# Behind Django's start, because settings are read by then.
from toolbelt.front import gate  # noqa: E402
from toolbelt.runtime import access, availability, plugins  # noqa: E402

application = gate.WsgiGate(django)

availability.start()
plugins.start()
access.start()
