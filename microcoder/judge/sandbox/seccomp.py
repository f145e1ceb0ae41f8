"""The system call filter: a list of what a program needs, everything else refused.

Two filters stack. The first is installed once in a box and allows what the box itself needs to run tests (fork, exec,
wait, pidfd_open, the calls that restrict further). The second is tiny and installed in every test process: from there
on no new process, no other program, no waiting on others, no change of anybody else's limits. Threads are allowed;
sockets other than a local pair (asyncio needs one) are not; clone3 answers ENOSYS so that the C library falls back to
clone, whose flags can be inspected. Files that can be read are the host's own, so nothing may be done to them that
others would notice: locks and flushes succeed and do nothing, leases and signals on readiness are refused.
"""

import ctypes
import struct

from . import kernel

# name:x86_64:aarch64 (one number where both agree, -1 where the call does not exist)
_ALLOWED = """
read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 pwrite64:18:68 preadv:295:69 pwritev:296:70
open:2:-1 openat:257:56 close:3:57 close_range:436 stat:4:-1 fstat:5:80 lstat:6:-1 newfstatat:262:79
statx:332:291 statfs:137:43 fstatfs:138:44 lseek:8:62 mmap:9:222 mprotect:10:226 munmap:11:215 mremap:25:216
madvise:28:233 msync:26:227 mincore:27:232 brk:12:214 mlock:149:228 munlock:150:229 rt_sigaction:13:134
rt_sigprocmask:14:135 rt_sigreturn:15:139 rt_sigpending:127:136 rt_sigtimedwait:128:137 rt_sigsuspend:130:133
sigaltstack:131:132 pause:34:-1 ioctl:16:29 access:21:-1 faccessat:269:48 faccessat2:439 pipe:22:-1 pipe2:293:59
select:23:-1 pselect6:270:72 poll:7:-1 ppoll:271:73 epoll_create:213:-1 epoll_create1:291:20 epoll_ctl:233:21
epoll_wait:232:-1 epoll_pwait:281:22 epoll_pwait2:441 eventfd:284:-1 eventfd2:290:19 timerfd_create:283:85
timerfd_settime:286:86 timerfd_gettime:287:87 dup:32:23 dup2:33:-1 dup3:292:24 nanosleep:35:101
clock_nanosleep:230:115 clock_gettime:228:113 clock_getres:229:114 gettimeofday:96:169 time:201:-1
getitimer:36:102 setitimer:38:103 alarm:37:-1 timer_create:222:107 timer_settime:223:110 timer_gettime:224:108
timer_delete:226:111 timer_getoverrun:225:109 getpid:39:172 gettid:186:178 getppid:110:173 getuid:102:174
geteuid:107:175 getgid:104:176 getegid:108:177 getresuid:118:148 getresgid:120:150 getgroups:115:158
getpgrp:111:-1 getpgid:121:155 getsid:124:156 uname:63:160 fcntl:72:25 flock:73:32 fsync:74:82 fdatasync:75:83
truncate:76:45 ftruncate:77:46 fallocate:285:47 fadvise64:221:223 getdents:78:-1 getdents64:217:61 getcwd:79:17
chdir:80:49 fchdir:81:50 rename:82:-1 renameat:264:38 renameat2:316:276 mkdir:83:-1 mkdirat:258:34 rmdir:84:-1
link:86:-1 linkat:265:37 unlink:87:-1 unlinkat:263:35 symlink:88:-1 symlinkat:266:36 readlink:89:-1
readlinkat:267:78 chmod:90:-1 fchmod:91:52 fchmodat:268:53 umask:95:166 utime:132:-1 utimes:235:-1
utimensat:280:88 futimesat:261:-1 futex:202:98 futex_waitv:449 sched_yield:24:124 sched_getaffinity:204:123
sched_getparam:143:121 sched_getscheduler:145:120 sched_get_priority_max:146:125 sched_get_priority_min:147:126
set_robust_list:273:99 get_robust_list:274:100 set_tid_address:218:96 rseq:334:293 arch_prctl:158:-1
getrandom:318:278 getrlimit:97:163 setrlimit:160:164 prlimit64:302:261 getrusage:98:165 times:100:153
sysinfo:99:179 getcpu:309:168 getpriority:140:141 membarrier:324:283 exit:60:93 exit_group:231:94 clone:56:220
restart_syscall:219:128 kill:62:129 tkill:200:130 tgkill:234:131 sendfile:40:71 copy_file_range:326:285
socketpair:53:199 sendto:44:206 recvfrom:45:207 sendmsg:46:211 recvmsg:47:212
shutdown:48:210 getsockopt:55:209 setsockopt:54:208 getsockname:51:204 getpeername:52:205 wait4:61:260
waitid:247:95 pidfd_open:434 prctl:157:167 seccomp:317:277 landlock_restrict_self:446
execveat:322:281
"""
_BOX_ONLY = ("wait4", "waitid", "pidfd_open", "prctl", "seccomp", "landlock_restrict_self", "execveat")
# What Landlock leaves to the owner of a file, where the file system is not private (before Linux 6.2 truncation too).
_BY_OWNER = ("truncate", "chmod", "fchmod", "fchmodat", "utime", "utimes", "utimensat", "futimesat")
_PRETENDED = ("flock", "fsync", "fdatasync", "msync")
# Commands of fcntl: copies of a descriptor, its flags and those of the file, asking for locks; and taking them.
_FCNTL, _FCNTL_PRETENDED, _F_SETFL = (0, 1, 2, 3, 5, 36, 1030, 1032, 1034), (6, 7, 37, 38), 4
_O_ASYNC = 0x2000
_XATTR = {"x86_64": (188, 199), "aarch64": (5, 16)}  # extended attributes, which a file system need not have
_CLONE3 = 435
_CLONE_THREAD = 0x10000
_RLIMIT_STACK = 3
_SOCK_STREAM = 1
_IOCTL = (0x5421, 0x5451, 0x5450, 0x541B)  # FIONBIO, FIOCLEX, FIONCLEX, FIONREAD
_ARCH = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}

_ALLOW, _KILL, _EPERM, _ENOSYS, _ENOTTY = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026, 0x00050019
_ENOTSUP = 0x0005005F
_NOTHING = 0x00050000  # the call returns 0 and has done nothing
# BPF: ld abs, jeq, jgt, jge, jset, and, ret; and a jump that asks nothing
_LOAD, _EQUAL, _ABOVE, _FROM, _ANY_BIT, _AND, _RETURN, _ALWAYS = 0x20, 0x15, 0x25, 0x35, 0x45, 0x54, 0x06, -1
# offsets in struct seccomp_data (both machines are little-endian)
_NR, _ARCH_AT, _ARG0, _ARG1, _ARG2, _ARG5, _ARG5_HIGH = 0, 4, 16, 24, 32, 56, 60


def _numbers() -> dict[str, int]:
    column = 1 if kernel.MACHINE == "x86_64" else -1
    table = (entry.split(":") for entry in _ALLOWED.split())
    return {row[0]: int(row[column]) for row in table if row[column] != "-1"}


def _op(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
    return struct.pack("HBBI", code, if_true, if_false, value)


def box_program() -> bytes:
    """Allow the listed calls, whoever makes them; refuse the rest."""
    numbers = sorted(_numbers().values())
    first, last = _XATTR[kernel.MACHINE]
    head = _op(_LOAD, _ARCH_AT) + _op(_EQUAL, _ARCH[kernel.MACHINE], 1, 0) + _op(_RETURN, _KILL) + _op(_LOAD, _NR)
    checks = b"".join(_op(_EQUAL, n, len(numbers) - i + 5, 0) for i, n in enumerate(numbers))
    tail = _op(_EQUAL, _CLONE3, 0, 1) + _op(_RETURN, _ENOSYS)
    tail += _op(_FROM, first, 0, 2) + _op(_ABOVE, last, 1, 0) + _op(_RETURN, _ENOTSUP)
    return head + checks + tail + _op(_RETURN, _EPERM) + _op(_RETURN, _ALLOW)


def test_program(own_pid: int | None = None, password: int | None = None, compiles: bool = False) -> bytes:
    """Refuse new processes and reaching for others.

    With `own_pid`, where no namespaces stand around it: signals to that process only, and no changing of others' files.
    With `password` (64 bits), for a process that is still to execute a program: execveat passes with that number as its
    sixth argument, which the call does not use. The program cannot know it, so it executes nothing further.
    If it `compiles`, a change of a file's mode that is not allowed does nothing and succeeds: rustc insists on it.
    """
    numbers = _numbers()
    steps: list[_Step] = [(_LOAD, _NR, 0, 0)]

    def rule(name: str, *body: _Step) -> None:
        """What is done for this call; a body ends in a decision. Without one the call is refused."""
        if name in numbers:
            steps.append((_EQUAL, numbers[name], 0 if body else _EPERM, len(body)))
            steps.extend(body)

    if password is not None:
        low, high = password & 0xFFFFFFFF, password >> 32
        rule("execveat", (_LOAD, _ARG5, 0, 0), (_EQUAL, low, 0, _EPERM),
             (_LOAD, _ARG5_HIGH, 0, 0), (_EQUAL, high, _ALLOW, _EPERM))  # fmt: skip
    pretended = (*_PRETENDED, "fchmod") if compiles and own_pid is not None else _PRETENDED
    for name in (*_BOX_ONLY, *(_BY_OWNER if own_pid is not None else ())):
        if name not in pretended:
            rule(name)
    steps += [(_EQUAL, numbers[name], _NOTHING, 0) for name in pretended]
    rule("clone", (_LOAD, _ARG0, 0, 0), (_ANY_BIT, _CLONE_THREAD, _ALLOW, _EPERM))
    # A pair of datagram sockets can send to any path; a pair of streams (what asyncio uses) cannot.
    rule("socketpair", (_LOAD, _ARG1, 0, 0), (_AND, 0xF, 0, 0), (_EQUAL, _SOCK_STREAM, _ALLOW, _EPERM))
    # ENOTTY is what Python expects of a file that is no terminal
    rule("ioctl", (_LOAD, _ARG1, 0, 0), *_one_of(_IOCTL, _ALLOW), (_ALWAYS, 0, _ENOTTY, _ENOTTY))
    commands = *_one_of(_FCNTL_PRETENDED, _NOTHING), *_one_of(_FCNTL, _ALLOW), (_ALWAYS, 0, _EPERM, _EPERM)
    rule("fcntl", (_LOAD, _ARG1, 0, 0), (_EQUAL, _F_SETFL, 0, 2),
         (_LOAD, _ARG2, 0, 0), (_ANY_BIT, _O_ASYNC, _EPERM, _ALLOW), *commands)  # fmt: skip
    # The C library would give every thread a stack as large as the main one, and soon have no room for more.
    stack = ((_LOAD, _ARG1, 0, 0), (_EQUAL, _RLIMIT_STACK, _EPERM, 0)) if password is not None else ()
    rule("prlimit64", *stack, (_LOAD, _ARG0, 0, 0), (_EQUAL, 0, _ALLOW, _EPERM))
    for name in ("kill", "tkill", "tgkill") if own_pid is not None else ():
        rule(name, (_LOAD, _ARG0, 0, 0), (_EQUAL, own_pid or 0, _ALLOW, _EPERM))
    return _assembled([*steps, (_ALWAYS, 0, _ALLOW, _ALLOW)])


_Step = tuple[int, int, int, int]  # operation, value, and where to go if so and if not: steps to skip, or a decision


def _one_of(values: tuple[int, ...], decision: int) -> list[_Step]:
    return [(_EQUAL, value, decision, 0) for value in values]


def _assembled(steps: list[_Step]) -> bytes:
    """The steps with all decisions behind them, each once: what a filter costs to install grows with its length."""
    decisions = sorted({target for *_, so, not_so in steps for target in (so, not_so) if target > 0xFF})
    out = b""
    for at, (code, value, *targets) in enumerate(steps):
        so, not_so = (t if t <= 0xFF else len(steps) + decisions.index(t) - at - 1 for t in targets)
        out += _op(_EQUAL, value, so, so) if code == _ALWAYS else _op(code, value, so, not_so)
    return out + b"".join(_op(_RETURN, decision) for decision in decisions)


class _Program(ctypes.Structure):
    _fields_ = [("length", ctypes.c_ushort), ("filter", ctypes.c_void_p)]


class Filter:
    """A filter ready to be installed: everything but the system call itself is done beforehand."""

    def __init__(self, program: bytes) -> None:
        self._buffer = ctypes.create_string_buffer(program, len(program))
        self._described = _Program(len(program) // 8, ctypes.addressof(self._buffer))
        self._pointer = ctypes.c_void_p(ctypes.addressof(self._described))
        self._number = _numbers()["seccomp"]

    def install(self) -> None:
        """Install the filter on this process, irrevocably. Needs no_new_privs."""
        if kernel.bare_syscall(self._number, 1, 0, self._pointer) != 0:
            raise OSError("seccomp: the filter was refused")
