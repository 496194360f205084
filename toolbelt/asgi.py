"""The ASGI application: `uvicorn toolbelt.asgi:application --http toolbelt.front.protocol:Protocol`."""

import os
import warnings

from django.core import asgi

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "toolbelt.settings")

# WhiteNoise answers with open files; Django reads each of them whole before it is sent, which small files can bear.
warnings.filterwarnings("ignore", message="StreamingHttpResponse must consume synchronous iterators")

django = asgi.get_asgi_application()

# Behind Django's start, because settings are read by then.
from toolbelt.front import application as front  # noqa: E402
from toolbelt.runtime.surfaces import prepared_answers  # noqa: E402

application = front.Application(django, prepared_answers.answers())
