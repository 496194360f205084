"""What comes of acts that begin together?"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from django.db import connection

from toolbelt.core import errors


def done(acts: Sequence[Callable[[], Any]]) -> list[Any]:
    """Do the acts in threads that begin together; give what each gave, or the product's error that it raised."""
    start = threading.Barrier(len(acts))
    came: list[Any] = [None] * len(acts)

    def run(number: int, act: Callable[[], Any]) -> None:
        try:
            start.wait()
            came[number] = act()
        except errors.ToolbeltError as error:
            came[number] = error
        finally:
            connection.close()

    threads = [threading.Thread(target=run, args=one) for one in enumerate(acts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return came
