"""Becomes a browser that can make no connection: run as a program, it gives up the right and then executes the browser.

    python browser_jail.py PIDFILE MOST_DATA_MB PROGRAM [ARGUMENT...]

From then on the kernel refuses this process, and all that it will ever start, every socket but those between processes
of this machine (AF_UNIX) and to the kernel itself (AF_NETLINK): no TCP, no UDP, no raw packets, whatever the browser's
code wants. It can't be undone (seccomp; prctl(2), seccomp(2)), and needs no rights. io_uring is also refused: it
could make sockets past the filter. Only the standard library, as it starts for every browser.
"""

from __future__ import annotations

import ctypes
import os
import platform
import resource
import signal
import struct
import sys
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_SECCOMP = 22
_PR_SET_NO_NEW_PRIVS = 38
_MODE_FILTER = 2

# By machine: the kernel's name of it (AUDIT_ARCH_*), and the number of socket(2).
_MACHINES = {"x86_64": (0xC000003E, 41), "aarch64": (0xC00000B7, 198)}
_X32 = 0x40000000  # calls of the other x86_64 numbering begin here
_IO_URING_SETUP = 425
_AF_UNIX, _AF_NETLINK = 1, 16

# Classic BPF: load a word, jump if equal, jump if not below, return.
_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_AT_NUMBER, _AT_MACHINE, _AT_FIRST_ARGUMENT = 0, 4, 16
_ALLOW, _KILL, _REFUSE = 0x7FFF0000, 0x80000000, 0x00050000 | 13  # EACCES


def is_supported() -> bool:
    """Whether a browser can be closed off on this machine."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("instructions", ctypes.c_void_p))


def _filter(machine: int, socket_call: int) -> bytes:
    """The filter: (code, jump if true, jump if false, value); jumps count the instructions left out."""
    instructions = [
        (_LOAD, 0, 0, _AT_MACHINE),
        (_EQUAL, 1, 0, machine),
        (_RETURN, 0, 0, _KILL),  # calls of another machine's numbering (32 bit)
        (_LOAD, 0, 0, _AT_NUMBER),
        (_AT_LEAST, 6, 0, _X32),
        (_EQUAL, 5, 0, _IO_URING_SETUP),
        (_EQUAL, 1, 0, socket_call),
        (_RETURN, 0, 0, _ALLOW),
        (_LOAD, 0, 0, _AT_FIRST_ARGUMENT),
        (_EQUAL, 2, 0, _AF_UNIX),
        (_EQUAL, 1, 0, _AF_NETLINK),
        (_RETURN, 0, 0, _REFUSE),
        (_RETURN, 0, 0, _ALLOW),
    ]
    return b"".join(struct.pack("HBBI", *instruction) for instruction in instructions)


def close_off() -> None:
    """Give up, for good, the right to connect anywhere. Raises OSError if the kernel can't."""
    machine, socket_call = _MACHINES[platform.machine()]
    code = ctypes.create_string_buffer(_filter(machine, socket_call))
    program = _Program(len(code.raw) // 8, ctypes.cast(code, ctypes.c_void_p))
    kernel = ctypes.CDLL(None, use_errno=True)
    for call in (
        (_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0),
        (_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(program), 0, 0),
    ):
        if kernel.prctl(*call) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"the browser can't be closed off: {os.strerror(number)}")


def main() -> None:
    """Close this process off, and become the browser; it ends with its parent."""
    pid_file, most_data_mb, program, *arguments = sys.argv[1:]
    parent = os.getppid()
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL))
    if os.getppid() != parent:  # killed in between
        sys.exit(1)
    most = int(most_data_mb) << 20
    resource.setrlimit(resource.RLIMIT_DATA, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    close_off()
    Path(pid_file).write_text(f"{os.getpid()} {parent}", "ascii")
    os.execv(program, [program, *arguments])


if __name__ == "__main__":
    main()
