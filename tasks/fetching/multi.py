"""libcurl's multi interface driven by the running asyncio event loop: no thread, no polling, no wrapper a call.

libcurl names the sockets it waits for and when it wants to be woken; the loop does the waiting. The sockets sit in
an epoll set of our own, which the loop watches as one file: a kept connection costs one system call a request
instead of four, and answers that came at once are handled in one turn of the loop (measured: 25 us CPU a request,
40 us with the AsyncCurlMulti that pycurl brings, which registers each socket with the loop).
"""

from __future__ import annotations

import asyncio
import contextlib
import select

import pycurl

from tasks.fetching.transfer import Outcome, Transfer

_EVENTS = {
    pycurl.POLL_IN: select.EPOLLIN,
    pycurl.POLL_OUT: select.EPOLLOUT,
    pycurl.POLL_INOUT: select.EPOLLIN | select.EPOLLOUT,
}
# Events handled before other work of the loop has its turn.
_EVENTS_A_TURN = 256
_IDLE_LOOKS = 8
_FEWEST_CONNECTIONS = 256


class Multi:
    """Performs transfers side by side; connections are kept and used again. For one running event loop.

    How many run at once is the caller's decision. Idle connections are kept up to twice the most transfers that
    ever ran at once (at least 256).

    Args:
        idle_s: a transfer that receives no byte for this long is ended (noticed up to an eighth later).
    """

    def __init__(self, idle_s: float) -> None:
        self._loop = asyncio.get_running_loop()
        self._idle_s = idle_s
        self._flying: dict[pycurl.Curl, Transfer] = {}
        self._connections = 0
        self._sockets = select.epoll()
        self._armed: dict[int, int] = {}
        self._kick: asyncio.Handle | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._wake_at = float("inf")
        self._look: asyncio.TimerHandle | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_interest)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer_wanted)
        self._act = self._multi.socket_action
        self.time = self._loop.time
        self._loop.add_reader(self._sockets.fileno(), self._on_sockets)

    async def perform(self, transfer: Transfer) -> Outcome:
        """Run a prepared transfer to its end, whatever that is. Cancelling takes it back and drops its connection."""
        future: asyncio.Future[Outcome] = self._loop.create_future()
        transfer.future = future
        transfer.moved_at = self._loop.time()
        transfer.moved = 0
        self._flying[transfer.curl] = transfer
        if len(self._flying) * 2 > self._connections:
            self._connections = max(_FEWEST_CONNECTIONS, 4 * len(self._flying))
            self._multi.setopt(pycurl.M_MAXCONNECTS, self._connections)
        self._multi.add_handle(transfer.curl)
        if self._look is None:
            self._look = self._loop.call_later(self._idle_s / _IDLE_LOOKS, self._look_for_idle)
        try:
            return await future
        except asyncio.CancelledError:
            self._take_back(transfer)
            raise

    async def close(self) -> None:
        """End what runs, close every connection. The event loop goes on meanwhile."""
        for transfer in list(self._flying.values()):
            self._take_back(transfer)
            _settle(transfer, pycurl.E_ABORTED_BY_CALLBACK, "the downloader was closed")
        for handle in (self._kick, self._timer, self._look):
            if handle is not None:
                handle.cancel()
        self._loop.remove_reader(self._sockets.fileno())
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, None)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, None)
        self._sockets.close()
        # libcurl waits here for name lookups under way: seconds if a DNS server is dead.
        await self._loop.run_in_executor(None, self._multi.close)

    # ---- what libcurl asks for (it must not be called back from within)

    def _on_interest(self, what: int, fd: int, _multi: object, _data: object) -> None:
        if what == pycurl.POLL_REMOVE:
            # Stays in the set: the connection is likely to be used again in a moment.
            self._armed[fd] = 0
            return
        events = _EVENTS[what]
        if fd in self._armed:
            self._armed[fd] = events
            try:
                self._sockets.modify(fd, events)
                return
            except FileNotFoundError:  # closed since, and the number given to another socket
                pass
        self._sockets.register(fd, events)
        self._armed[fd] = events

    def _on_timer_wanted(self, timeout_ms: int) -> None:
        if timeout_ms == 0:
            if self._kick is None:
                self._kick = self._loop.call_soon(self._on_kick)
            return
        self._wake_at = self._loop.time() + timeout_ms / 1000 if timeout_ms > 0 else float("inf")
        # A timer that is early does no harm, so that most requests need not touch it.
        if timeout_ms > 0 and (self._timer is None or self._timer.when() > self._wake_at):
            if self._timer is not None:
                self._timer.cancel()
            self._timer = self._loop.call_at(self._wake_at, self._on_timer)

    # ---- what the event loop brings

    def _on_kick(self) -> None:
        self._kick = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)
        self._collect()

    def _on_timer(self) -> None:
        self._timer = None
        if self._loop.time() >= self._wake_at:
            self._wake_at = float("inf")
            self._act(pycurl.SOCKET_TIMEOUT, 0)
            self._collect()
        if self._timer is None and self._wake_at != float("inf"):
            self._timer = self._loop.call_at(self._wake_at, self._on_timer)

    def _on_sockets(self) -> None:
        act, armed = self._act, self._armed
        for fd, events in self._sockets.poll(0, _EVENTS_A_TURN):
            if not armed.get(fd):
                # The other side closed an idle connection.
                armed.pop(fd, None)
                with contextlib.suppress(OSError):
                    self._sockets.unregister(fd)
                continue
            ready = (pycurl.CSELECT_IN if events & ~select.EPOLLOUT else 0) | (
                pycurl.CSELECT_OUT if events & ~select.EPOLLIN else 0
            )
            act(fd, ready)
        self._collect()

    def _collect(self) -> None:
        """Hand the transfers that ended to those who wait for them."""
        left = 1
        while left:
            left, done, failed = self._multi.info_read()
            for curl in done:
                self._end(curl, pycurl.E_OK, "")
            for curl, code, message in failed:
                self._end(curl, code, message)

    def _end(self, curl: pycurl.Curl, code: int, message: str) -> None:
        self._multi.remove_handle(curl)
        transfer = self._flying.pop(curl, None)
        if transfer is not None:
            _settle(transfer, code, message)

    def _look_for_idle(self) -> None:
        self._look = None
        if not self._flying:
            return
        now = self._loop.time()
        for transfer in list(self._flying.values()):
            if (moved := transfer.count_bytes()) != transfer.moved:
                transfer.moved, transfer.moved_at = moved, now
            elif now - transfer.moved_at >= self._idle_s:
                self._take_back(transfer)
                _settle(transfer, pycurl.E_OPERATION_TIMEDOUT, f"nothing came after {self._idle_s:g} s")
        self._look = self._loop.call_later(self._idle_s / _IDLE_LOOKS, self._look_for_idle)

    def _take_back(self, transfer: Transfer) -> None:
        if self._flying.pop(transfer.curl, None) is not None:
            self._multi.remove_handle(transfer.curl)


def _settle(transfer: Transfer, code: int, message: str) -> None:
    if transfer.future is not None and not transfer.future.done():
        transfer.future.set_result((code, message))
    transfer.future = None
