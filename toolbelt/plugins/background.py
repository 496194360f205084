"""Where does a plugin's code run? Async functions on one event loop, plain ones each in a thread of its own.

Why one loop, in a thread of the registry's: what an async plugin holds (an HTTP client, a subprocess, a lock) belongs
to the loop on which it was made, and must find it running at every later call. Django asks from threads without
a loop, and from loops that last no longer than one request; so nobody's own loop will do, and all come to this one.
The price: an async function that blocks delays other plugins, so every wait for this loop has a limit outside of it.

Why a thread for each plain call, and no pool: a pool's threads are waited for when the process ends, and shared by
all. A function that hangs would hold up the end, and take a place from other plugins. These threads are daemons.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Coroutine
from typing import Any, TypeVar

import structlog

from toolbelt.plugins import lifecycle

T = TypeVar("T")

# Awaited directly before a tool runs; raises where it may not run after all.
Check = Callable[[], Awaitable[None]]

MOST_THREADS = 32
CLOSE_WITHIN = 2.0

_log = structlog.get_logger(__name__)
# The loop whose plain function this thread runs.
_HOME: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "toolbelt_loop", default=None
)


class Late(Exception):
    """What runs on the loop has not ended in time, and was told to."""


class Loop:
    """An event loop in a daemon thread, started when it is first needed; for use from any thread and any loop."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    async def answer(self, coroutine: Coroutine[Any, Any, T], within: float) -> T:
        """Run it there, with the context variables of here; raise :class:`Late` where that takes longer."""
        future = asyncio.wrap_future(self._submit(coroutine))
        try:
            await asyncio.wait({future}, timeout=within)
            if not future.done():
                raise Late
            return future.result()
        finally:
            future.cancel()

    def answer_sync(self, coroutine: Coroutine[Any, Any, T], within: float) -> T:
        """Do as :meth:`answer` does, in a thread that may block."""
        if self._thread is threading.current_thread():
            coroutine.close()
            raise TypeError(
                "This is the plugins' own event loop, which cannot wait for itself: use the async form."
            )
        future = self._submit(coroutine)
        try:
            concurrent.futures.wait({future}, timeout=within)
            if not future.done():
                raise Late
            return future.result()
        finally:
            future.cancel()

    @property
    def is_started(self) -> bool:
        """Say whether anything was ever run on it."""
        return self._loop is not None

    def current_task(self) -> asyncio.Task[Any] | None:
        """Give the task that runs on it at this moment: the one to blame, where the loop does not answer."""
        return asyncio.current_task(self._loop) if self._loop else None

    def close(self) -> None:
        """Cancel what is still on it and end it; one that is blocked is left to end with the process."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_WITHIN)
        if thread.is_alive():
            _log.warning("the plugins' event loop is blocked, and left behind")

    def _submit(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        try:
            return asyncio.run_coroutine_threadsafe(coroutine, self._running())
        except RuntimeError:
            coroutine.close()
            raise

    def _running(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._closed:
                raise RuntimeError("the plugins' event loop is closed")
            # After a fork the child has the loop, but not the thread that ran it.
            if self._loop is None or self._thread is None or not self._thread.is_alive():
                self._loop = _new_loop()
                self._thread = threading.Thread(
                    target=self._run, args=(self._loop,), name="toolbelt-plugins", daemon=True
                )
                self._thread.start()
            return self._loop

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        while not self._closed:
            try:
                loop.run_forever()
            except (SystemExit, KeyboardInterrupt) as error:
                # A task of a plugin's own asked the process to exit. The loop serves others too, and goes on.
                _log.error("a plugin tried to end the process", traceback=lifecycle.traced(error))
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                loop.run_until_complete(asyncio.wait(left, timeout=CLOSE_WITHIN / 2))
                loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's event loop where that is installed, which takes half the CPU; else Python's own."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Threads:
    """Threads for one plugin's plain functions, at most ``most`` at a time; more wait until one is free.

    A thread cannot be cancelled: one whose caller has given up keeps its place until it ends, so that a plugin
    that hangs runs out of its own threads and of nobody else's.
    """

    def __init__(self, most: int = MOST_THREADS) -> None:
        self._free = asyncio.Semaphore(most)

    async def run(self, function: Callable[..., T], *arguments: Any, check: Check | None = None) -> T:
        """Return what the plain function returns, or raise what it or ``check`` raises.

        ``check`` is awaited once a thread is free: waiting for one may take long.
        """
        await self._free.acquire()
        if check is not None:
            try:
                await check()
            except BaseException:
                self._free.release()
                raise
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()
        context.run(_HOME.set, loop)

        def settle(result: Any, error: BaseException | None) -> None:
            self._free.release()
            if answer.done():
                return
            if error is None:
                answer.set_result(result)
            else:
                answer.set_exception(_raisable(error))

        def work() -> None:
            result, raised = None, None
            try:
                result = context.run(function, *arguments)
            except BaseException as error:
                raised = error
            # The loop may have been closed in the meantime: then nobody waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, raised)

        try:
            threading.Thread(target=work, name="toolbelt-plugin-call", daemon=True).start()
        except RuntimeError:
            self._free.release()
            raise
        return await answer


async def call(
    threads: Threads, function: Callable[..., Any], *arguments: Any, check: Check | None = None
) -> Any:
    """Call a plugin's function, async or plain, from the loop; only an Exception or a cancellation comes out.

    ``check`` is awaited directly before the function runs.
    """
    try:
        if inspect.iscoroutinefunction(function):
            if check is not None:
                await check()
            found = function(*arguments)
        else:
            found = await threads.run(function, *arguments, check=check)
        while inspect.isawaitable(found):
            found = await found
    except (SystemExit, KeyboardInterrupt) as error:
        raise _raisable(error) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # Nobody cancelled this call: the plugin let a cancellation of its own out.
        raise _raisable(error) from error
    return found


def wait(awaitable: Awaitable[T]) -> T:
    """Give what the awaitable gives, in a plain function of a plugin: ``wait(runtime.state.get("seen"))``."""
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise TypeError("wait is for plain functions: in an async one, write await.")
    home = _HOME.get()
    if home is None:
        raise TypeError("wait is for the plain functions that a plugin runs: nothing runs one here.")
    return asyncio.run_coroutine_threadsafe(_awaited(awaitable), home).result()


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _raisable(error: BaseException) -> Exception:
    """Give an exception that a future can carry and that ends neither a loop nor a caller's task."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
