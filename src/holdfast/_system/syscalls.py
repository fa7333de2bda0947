"""Names of the system calls that a process is found waiting in, by their numbers on this machine."""

from __future__ import annotations

import platform

# name: number on x86-64, number on ARM; -1 where there is none
_NUMBERS = {
    "accept": (43, 202),
    "accept4": (288, 242),
    "clock_nanosleep": (230, 115),
    "clone": (56, 220),
    "clone3": (435, 435),
    "close": (3, 57),
    "connect": (42, 203),
    "epoll_pwait": (281, 22),
    "epoll_pwait2": (441, 441),
    "epoll_wait": (232, -1),
    "fcntl": (72, 25),
    "fdatasync": (75, 83),
    "flock": (73, 32),
    "fsync": (74, 82),
    "futex": (202, 98),
    "futex_waitv": (449, 449),
    "getdents64": (217, 61),
    "io_getevents": (208, 4),
    "io_uring_enter": (426, 426),
    "ioctl": (16, 29),
    "mq_timedreceive": (243, 183),
    "msgrcv": (70, 188),
    "nanosleep": (35, 101),
    "newfstatat": (262, 79),
    "open": (2, -1),
    "openat": (257, 56),
    "pause": (34, -1),
    "poll": (7, -1),
    "ppoll": (271, 73),
    "pread64": (17, 67),
    "preadv": (295, 69),
    "pselect6": (270, 72),
    "pwrite64": (18, 68),
    "read": (0, 63),
    "readv": (19, 65),
    "recvfrom": (45, 207),
    "recvmmsg": (299, 243),
    "recvmsg": (47, 212),
    "restart_syscall": (219, 128),
    "rt_sigsuspend": (130, 133),
    "rt_sigtimedwait": (128, 137),
    "select": (23, -1),
    "semop": (65, 193),
    "semtimedop": (220, 192),
    "sendfile": (40, 71),
    "sendmsg": (46, 211),
    "sendto": (44, 206),
    "splice": (275, 76),
    "stat": (4, -1),
    "statx": (332, 291),
    "vfork": (58, -1),
    "wait4": (61, 260),
    "waitid": (247, 95),
    "write": (1, 64),
    "writev": (20, 66),
}
_MACHINES = ("x86_64", "aarch64")

# A call that a signal interrupted goes on under one name for all; where it sleeps tells which one it is.
_RESTARTED = {"futex": "futex", "nanosleep": "clock_nanosleep", "poll": "poll"}


def name(number: int, wchan: str) -> str:
    """As in the manual; ``system call 451`` when it is not one of the common ones."""
    known = _NAMES.get(number, f"system call {number}")
    if known != "restart_syscall":
        return known
    return next((call for part, call in _RESTARTED.items() if part in wchan), known)


def _names() -> dict[int, str]:
    if platform.machine() not in _MACHINES:
        return {}
    column = _MACHINES.index(platform.machine())
    return {numbers[column]: name for name, numbers in _NUMBERS.items() if numbers[column] >= 0}


_NAMES = _names()
