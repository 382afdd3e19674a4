"""Runs commands without what only Unix has: `python -m tests.unixless COMMAND + COMMAND …`.

Our code does not find it; our dependencies do, since their code for Windows cannot run here. Nor
can anybody open a directory, or move or remove a file that is open.
"""

from __future__ import annotations

import builtins
import errno
import os
import select
import signal
import socket
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

OURS = {"query_mutator", "ppo", "batching"}
UNIX_MODULES = {"curses", "fcntl", "grp", "posix", "pty", "pwd", "resource", "syslog", "termios"}
WINDOWS_HAS = {
    os: """
        DirEntry EX_OK F_OK GenericAlias Mapping MutableMapping O_APPEND O_CREAT O_EXCL O_RDONLY
        O_RDWR O_TRUNC O_WRONLY P_NOWAIT P_NOWAITO P_WAIT PathLike R_OK SEEK_CUR SEEK_END SEEK_SET
        TMP_MAX W_OK X_OK abc abort access altsep chdir chmod close closerange cpu_count curdir
        defpath device_encoding devnull dup dup2 environ error execl execle execlp execlpe execv
        execve execvp execvpe extsep fdopen fsdecode fsencode fspath fstat fsync ftruncate
        get_exec_path get_inheritable get_terminal_size getcwd getcwdb getenv getlogin getpid
        getppid isatty kill linesep link listdir lseek lstat makedirs mkdir name open pardir path
        pathsep pipe popen putenv read readlink remove removedirs rename renames replace rmdir
        scandir sep set_inheritable spawnl spawnle spawnv spawnve st stat stat_result
        statvfs_result strerror supports_bytes_environ supports_dir_fd supports_effective_ids
        supports_fd supports_follow_symlinks symlink sys system terminal_size times times_result
        truncate umask uname_result unlink unsetenv urandom utime waitpid waitstatus_to_exitcode
        walk write
    """,
    signal: """
        Handlers NSIG SIGABRT SIGFPE SIGILL SIGINT SIGSEGV SIGTERM SIG_DFL SIG_IGN Signals
        default_int_handler getsignal raise_signal set_wakeup_fd signal strsignal valid_signals
    """,
    select: "error select",
    socket: " ".join(name for name in vars(socket) if not name.startswith(("AF_UNIX", "SCM_"))),
    time: """
        altzone asctime ctime daylight get_clock_info gmtime localtime mktime monotonic
        monotonic_ns perf_counter perf_counter_ns process_time process_time_ns sleep strftime
        strptime struct_time thread_time thread_time_ns time time_ns timezone tzname
    """,
}


def is_ours(names: Mapping[str, Any]) -> bool:
    return str(names.get("__name__")).partition(".")[0] in OURS


def hide_names(module: ModuleType, kept: set[str]) -> None:
    """Takes all other names of a module away from our code."""
    others = [name for name in vars(module) if name not in kept and not name.startswith("_")]
    hidden = {name: vars(module).pop(name) for name in others}

    def find(name: str) -> Any:
        if name not in hidden or is_ours(sys._getframe(1).f_globals):
            raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")
        return hidden[name]

    vars(module)["__getattr__"] = find


def hide_modules() -> None:
    """Takes the modules away from our code, and locks by `fcntl` from the package that has them."""
    found = builtins.__import__

    def find(name: str, importer: Any = None, *rest: Any, **named: Any) -> ModuleType:
        if name in UNIX_MODULES and (name == "fcntl" or is_ours(importer or {})):
            raise ModuleNotFoundError(f"No module named {name!r}")
        return found(name, importer, *rest, **named)

    setattr(builtins, "__import__", find)  # noqa: B010


def refuse(function: str, reason: Callable[[str], bool]) -> None:
    """Has a function of `os` fail for paths, as Windows has it."""
    allowed = getattr(os, function)

    def checked(path: Any, *rest: Any, **named: Any) -> Any:
        if reason(os.path.realpath(path)):
            raise PermissionError(errno.EACCES, "Permission denied", path)
        return allowed(path, *rest, **named)

    setattr(os, function, checked)


def is_open(path: str) -> bool:
    """Whether this process has the file open, or one within the directory."""
    handles = [f"/proc/self/fd/{handle}" for handle in os.listdir("/proc/self/fd")]
    found = {os.path.realpath(handle) for handle in handles if os.path.islink(handle)}
    return any(file == path or file.startswith(f"{path}/") for file in found)


if __name__ == "__main__":
    for module, names in WINDOWS_HAS.items():
        hide_names(module, set(names.split()))
    hide_modules()
    refuse("open", os.path.isdir)
    for function in ("remove", "rename", "replace", "rmdir", "unlink"):
        refuse(function, is_open)
    warnings.filterwarnings("ignore", "only soft file lock is available")
    warnings.filterwarnings("error", category=EncodingWarning, module="|".join(OURS))
    from query_mutator.cli import main

    for number, command in enumerate(" ".join(sys.argv[1:]).split(" + "), 1):
        if main(command.split(" ")):
            sys.exit(number)
