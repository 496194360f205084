"""Execution of plugins' code: async functions on one event loop, plain functions each in a thread of its own.

There is one loop, in a thread of the registry: what an async plugin holds (an HTTP client, a subprocess, a lock)
belongs to the loop on which it was created, which must be running at every later call. Django calls from threads
without a loop, and from loops that last for one request, so no caller's loop is suitable. The drawback is that an
async function that blocks delays other plugins, so every wait for this loop also has a limit outside of it.

Plain calls run in new daemon threads instead of a pool: a process waits for a pool's threads when it exits, and all
plugins would share them. A function that hangs would delay the exit, and take a thread from other plugins.
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

from toolbelt.plugins import contract, lifecycle, slots

T = TypeVar("T")

# Awaited directly before a tool runs; raises if it may no longer run.
Check = Callable[[], Awaitable[None]]

MAX_THREADS = 32
CLOSE_SECONDS = 2.0

_log = structlog.get_logger(__name__)
# The loop whose plain function this thread runs.
_CALLING_LOOP: contextvars.ContextVar[asyncio.AbstractEventLoop | None] = contextvars.ContextVar(
    "toolbelt_loop", default=None
)
# The current call's check, for an async function that runs plain ones in threads, as FunctionPlugin does.
_CHECK: contextvars.ContextVar[Check | None] = contextvars.ContextVar("toolbelt_check", default=None)


class DeadlineError(Exception):
    """The code on the loop did not finish in time, and was cancelled."""


class Loop:
    """An event loop in a daemon thread, which starts at its first use. Usable from any thread and any loop.

    With ``host``, it is that loop instead, which its owner runs in its own thread.
    """

    def __init__(self, host: asyncio.AbstractEventLoop | None = None) -> None:
        self._lock = threading.Lock()
        self.host = host
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False

    async def run(
        self, coroutine: Coroutine[Any, Any, T], within: float, extension: Callable[[], float] = lambda: 0.0
    ) -> T:
        """Run the coroutine on this loop, with the caller's context variables. Raise DeadlineError after ``within``
        seconds.

        ``extension`` is called when the time is up, and returns how many more seconds to wait.
        """
        here = asyncio.get_running_loop()
        future: asyncio.Future[T]
        if self.host is here and not self._closed:
            # A task of its own, so that the caller need not wait for its cancellation.
            future = here.create_task(coroutine)
            # Retrieve the exception if the caller has stopped waiting, so that asyncio does not log it.
            future.add_done_callback(lambda finished: finished.cancelled() or finished.exception())
        else:
            future = asyncio.wrap_future(self._submit(coroutine))
        try:
            await asyncio.wait({future}, timeout=within)
            while not future.done() and (more := extension()) > 0:
                await asyncio.wait({future}, timeout=more)
            if not future.done():
                raise DeadlineError
            return future.result()
        finally:
            future.cancel()

    def run_sync(self, coroutine: Coroutine[Any, Any, T], within: float) -> T:
        """Do the same as :meth:`run`, blocking the calling thread."""
        if self._is_here():
            coroutine.close()
            raise TypeError(
                "This is the plugins' own event loop, which cannot wait for itself: use the async form."
            )
        future = self._submit(coroutine)
        try:
            concurrent.futures.wait({future}, timeout=within)
            if not future.done():
                raise DeadlineError
            return future.result()
        finally:
            future.cancel()

    @property
    def is_started(self) -> bool:
        """Return whether the loop was ever used."""
        return self._loop is not None

    def current_task(self) -> asyncio.Task[Any] | None:
        """Return the task that the loop is running: the culprit, if the loop does not respond."""
        return asyncio.current_task(self._loop) if self._loop else None

    def close(self) -> None:
        """Cancel the loop's tasks and end it. A blocked loop is left to end with the process."""
        with self._lock:
            self._closed = True
            loop, thread = self._loop, self._thread
        if loop is None or thread is None or not thread.is_alive():
            return
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_SECONDS)
        if thread.is_alive():
            _log.warning("the plugins' event loop is blocked and was abandoned")

    def _is_here(self) -> bool:
        """Return whether the calling thread is the one that runs the loop."""
        if self.host is None:
            return self._thread is threading.current_thread()
        try:
            return asyncio.get_running_loop() is self.host
        except RuntimeError:
            return False

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
            if self.host is not None:
                return self.host
            # After a fork, the child has the loop but not its thread.
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
                # A plugin's task tried to exit the process. The loop serves other plugins too, and continues.
                _log.error("a plugin tried to end the process", traceback=lifecycle.traced(error))
        left = asyncio.all_tasks(loop)
        for task in left:
            task.cancel()
        if left:
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                loop.run_until_complete(asyncio.wait(left, timeout=CLOSE_SECONDS / 2))
                loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()


def _new_loop() -> asyncio.AbstractEventLoop:
    """Return uvloop's event loop if it is installed, because it halves the CPU use, or else asyncio's."""
    try:
        import uvloop
    except ImportError:
        return asyncio.new_event_loop()
    return uvloop.new_event_loop()


class Threads:
    """Threads for one plugin's plain functions: at most ``limit`` at a time, shared by agents as slots are.

    A thread cannot be cancelled. If its caller stops waiting, it still counts until it ends, so a plugin that hangs
    uses up its own threads and no other plugin's.
    """

    def __init__(self, limit: int = MAX_THREADS) -> None:
        self._limit, self._slots = limit, slots.Slots()

    async def run(self, function: Callable[..., T], *arguments: Any, check: Check | None = None) -> T:
        """Run the plain function in a thread and return its result. Raise what it or ``check`` raises.

        ``check`` is awaited once a thread is free, because waiting for one may take long. Without ``check``, the
        current call's check is repeated after such a wait.
        """
        call = contract.CURRENT_CALL.get()
        ticket = self._slots.enter("", call.agent if call is not None else "", self._limit)
        try:
            if not ticket.done():
                check = check or _CHECK.get()
                await asyncio.wrap_future(ticket)
            if check is not None:
                await check()
        except BaseException:
            self._slots.leave(ticket)
            raise
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        context = contextvars.copy_context()
        context.run(_CALLING_LOOP.set, loop)

        def settle(result: Any, error: BaseException | None) -> None:
            self._slots.leave(ticket)
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
            # If the loop was closed in the meantime, no caller waits.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle, result, raised)

        try:
            threading.Thread(target=work, name="toolbelt-plugin-call", daemon=True).start()
        except RuntimeError:
            self._slots.leave(ticket)
            raise
        return await answer


async def call(
    threads: Threads, function: Callable[..., Any], *arguments: Any, check: Check | None = None
) -> Any:
    """Call a plugin's function, async or plain, on the loop. It only raises an Exception, or is cancelled.

    ``check`` is awaited directly before the function runs.
    """
    try:
        if inspect.iscoroutinefunction(function):
            if check is not None:
                _CHECK.set(check)
                await check()
            result = function(*arguments)
        else:
            result = await threads.run(function, *arguments, check=check)
        while inspect.isawaitable(result):
            result = await result
    except (SystemExit, KeyboardInterrupt) as error:
        raise _raisable(error) from error
    except asyncio.CancelledError as error:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        # The call was not cancelled: the plugin raised a CancelledError itself.
        raise _raisable(error) from error
    return result


def wait(awaitable: Awaitable[T]) -> T:
    """Return the awaitable's result, in a plugin's plain function: ``wait(runtime.state.get("seen"))``."""
    with contextlib.suppress(RuntimeError):
        asyncio.get_running_loop()
        raise TypeError("wait is for plain functions: use await in an async function.")
    calling_loop = _CALLING_LOOP.get()
    if calling_loop is None:
        raise TypeError("wait only works in a plain function that a plugin runs.")
    return asyncio.run_coroutine_threadsafe(_awaited(awaitable), calling_loop).result()


async def _awaited(awaitable: Awaitable[T]) -> T:
    return await awaitable


def _raisable(error: BaseException) -> Exception:
    """Return an exception that a future can carry and that ends neither a loop nor a caller's task."""
    if isinstance(error, Exception) and not isinstance(error, StopIteration):
        return error
    wrapped = RuntimeError(f"{type(error).__name__}: {error}")
    wrapped.__cause__ = error
    return wrapped
