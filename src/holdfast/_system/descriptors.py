"""What a descriptor of another process is: which file, which pipe, a connection with whom."""

from __future__ import annotations

import enum
import ipaddress
import os
import re
import struct
import sys
from dataclasses import dataclass

from . import proc

_POLLFD = struct.Struct("ihh")
_POLLS, _SELECTS, _EPOLLS = ("poll", "ppoll"), ("select", "pselect6"), ("epoll_wait", "epoll_pwait", "epoll_pwait2")
# Calls whose first argument is a descriptor.
_STREAMS = ("read", "readv", "pread64", "preadv", "write", "writev", "pwrite64", "splice")
_SOCKETS = ("accept", "accept4", "connect", "recvfrom", "recvmmsg", "recvmsg", "sendmsg", "sendto")
_FILES = ("close", "fcntl", "fdatasync", "flock", "fsync", "getdents64", "ioctl")
_MOST = 1024  # descriptors that one call is asked about
_NETWORK = ("9p", "afs", "beegfs", "ceph", "cifs", "fuse", "gpfs", "lustre", "nfs", "smb")


class Sort(enum.Enum):
    FILE = "file"
    PIPE = "pipe"
    SOCKET = "socket"
    OTHER = "other"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """``name`` is who or what is at the other end: an address, a path; ``kind`` how it is reached."""

    number: int
    sort: Sort
    name: str
    kind: str

    def __str__(self) -> str:
        return f"{self.name} ({self.kind}, descriptor {self.number})"


def waited_for(pid: int, call: proc.Call) -> list[int]:
    """The descriptors that a system call is about."""
    first, second, third = (*call.arguments, 0, 0, 0)[:3]
    if call.name in (*_STREAMS, *_SOCKETS, *_FILES):
        return [first & 0xFFFFFFFF]
    if call.name in _EPOLLS:
        told = proc.text(f"/proc/{pid}/fdinfo/{first}")
        return [int(number) for number in re.findall(r"tfd:\s*(\d+)", told)]
    if call.name in _POLLS and proc.is_readable(pid):
        pages = proc.memory(pid, first, _POLLFD.size * min(second, _MOST))
        return [number for number, _, _ in _POLLFD.iter_unpack(pages[: len(pages) // 8 * 8]) if number >= 0]
    if call.name in _SELECTS and proc.is_readable(pid):
        sets = [_bits(proc.memory(pid, address, min(first, _MOST) // 8 + 1)) for address in (second, third) if address]
        return sorted({number for numbers in sets for number in numbers if number < first})
    return []


def _bits(mask: bytes) -> list[int]:
    return [8 * place + bit for place, byte in enumerate(mask) for bit in range(8) if byte >> bit & 1]


def describe(pid: int, number: int) -> Descriptor | None:
    """None when it is not open, or may not be looked at."""
    try:
        link = os.readlink(f"/proc/{pid}/fd/{number}")
    except OSError:
        return None
    kind, _, inode = link.partition(":[")
    if kind == "socket":
        return _socket(pid, number, inode.rstrip("]"))
    if kind == "pipe":
        return Descriptor(number, Sort.PIPE, "the other end of a pipe", "pipe")
    if link.startswith("anon_inode:"):
        return Descriptor(number, Sort.OTHER, link.removeprefix("anon_inode:").strip("[]"), "event")
    if link.startswith("/dev/"):
        return Descriptor(number, Sort.OTHER, link, "device")
    mount = _network_mount(pid, link)
    return Descriptor(number, Sort.FILE, link, f"file on {mount}" if mount else "file")


def _socket(pid: int, number: int, inode: str) -> Descriptor:
    for table in ("tcp", "tcp6", "udp", "udp6"):
        fields = _row(f"/proc/{pid}/net/{table}", 9, inode)
        if fields:
            local, peer = _address(fields[1]), _address(fields[2])
            name = f"anyone at {local}" if peer.endswith(":0") else peer
            return Descriptor(number, Sort.SOCKET, name, table.upper().rstrip("6"))
    fields = _row(f"/proc/{pid}/net/unix", 6, inode)
    name = fields[7] if len(fields) > 7 else "a process of this machine"
    return Descriptor(number, Sort.SOCKET, name, "unix socket" if fields else "socket")


def _row(path: str, column: int, inode: str) -> list[str]:
    for line in proc.text(path).splitlines():
        if inode in line and line.split()[column : column + 1] == [inode]:
            return line.split()
    return []


def _address(text: str) -> str:
    """From the kernel's form: words of 32 bits, each in the machine's byte order."""
    digits, _, port = text.partition(":")
    words = [int(digits[place : place + 8], 16).to_bytes(4, sys.byteorder) for place in range(0, len(digits), 8)]
    address = ipaddress.ip_address(b"".join(words))
    mapped = getattr(address, "ipv4_mapped", None)
    if address.version == 6 and mapped is None:
        return f"[{address}]:{int(port, 16)}"
    return f"{mapped or address}:{int(port, 16)}"


def _network_mount(pid: int, path: str) -> str:
    """Where a file lies whose file system waits for another machine or process: "nfs4 server:/export"."""
    best, found = "", ""
    for line in proc.text(f"/proc/{pid}/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        where, (kind, source) = before.split()[4], after.split()[:2]
        if len(where) >= len(best) and (path + "/").startswith(where.rstrip("/") + "/"):
            best, found = where, f"{kind} {source}" if kind.startswith(_NETWORK) else ""
    return found


def file_lock_holder(pid: int) -> str:
    """Who holds the file lock that this process waits for, as "4711 (python)"; empty when the system does not say."""
    rows = [line.split() for line in proc.text("/proc/locks").splitlines()]
    waits = next((row[0] for row in rows if row[1] == "->" and row[5] == str(pid)), None)
    holder = next((int(row[4]) for row in rows if row[0] == waits and row[1] != "->"), 0)
    return f"{holder} ({proc.name(holder)})" if holder > 0 else ""  # a descriptor's lock is nobody's
