"""The WSGI application: the same as `toolbelt.asgi`, for hosts that only support WSGI."""

import os

from django.core import wsgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbelt.settings")

django = wsgi.get_wsgi_application()

# Behind Django's start, because settings are read by then.
from toolbelt.control.servers import running_tools  # noqa: E402
from toolbelt.front import request_limits  # noqa: E402
from toolbelt.runtime import availability, credentials, plugins  # noqa: E402

application = request_limits.WsgiRequestLimits(django)

availability.start()
plugins.start()
credentials.start()
running_tools.start(plugins.runnable)
