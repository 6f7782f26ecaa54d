"""System calls by name: their numbers on each architecture, and a way to make those that Python has no function for.

One table for the filters and for our own calls. A name that is missing in the table raises KeyError; a name
that an architecture does not have (`-`) is left out of its filters.
"""

import ctypes
import os
import platform
from typing import Final

_NAMES: Final = """
    read:0:63 write:1:64 readv:19:65 writev:20:66 pread64:17:67 pwrite64:18:68 close:3:57 fstat:5:80
    newfstatat:262:79 statx:332:291 stat:4:- lstat:6:- access:21:- faccessat:269:48 faccessat2:439:439
    readlink:89:- readlinkat:267:78 getcwd:79:17 lseek:8:62 fcntl:72:25 ioctl:16:29 dup:32:23 dup2:33:-
    dup3:292:24 poll:7:- ppoll:271:73 select:23:- pselect6:270:72 epoll_create:213:- epoll_create1:291:20
    epoll_ctl:233:21 epoll_wait:232:- epoll_pwait:281:22 epoll_pwait2:441:441 eventfd2:290:19 pipe:22:-
    pipe2:293:59 mmap:9:222 munmap:11:215 mremap:25:216 mprotect:10:226 pkey_mprotect:329:288 brk:12:214
    madvise:28:233 membarrier:324:283 futex:202:98 set_robust_list:273:99 rseq:334:293 sched_yield:24:124
    sched_getaffinity:204:123 sched_setaffinity:203:122 getcpu:309:168 rt_sigaction:13:134
    rt_sigprocmask:14:135 rt_sigreturn:15:139 sigaltstack:131:132 rt_sigtimedwait:128:137 setitimer:38:103
    getitimer:36:102 alarm:37:- timer_create:222:107 timer_settime:223:110 timer_delete:226:111
    timerfd_create:283:85 exit:60:93 exit_group:231:94 restart_syscall:219:128 clock_gettime:228:113
    clock_getres:229:114 clock_nanosleep:230:115 nanosleep:35:101 gettimeofday:96:169 time:201:- times:100:153
    getrusage:98:165 sysinfo:99:179 uname:63:160 getrandom:318:278 getpid:39:172 gettid:186:178 getppid:110:173
    getuid:102:174 geteuid:107:175 getgid:104:176 getegid:108:177 getresuid:118:148 getresgid:120:150
    getgroups:115:158 getpgrp:111:- getpgid:121:155 getsid:124:156 prlimit64:302:261 getrlimit:97:163
    setrlimit:160:164 getpriority:140:141 setpriority:141:140 prctl:157:167 socket:41:198 socketpair:53:199
    connect:42:203 bind:49:200 listen:50:201 accept:43:202 accept4:288:242 sendto:44:206 recvfrom:45:207
    sendmsg:46:211 recvmsg:47:212 sendmmsg:307:269 recvmmsg:299:243 shutdown:48:210 getsockname:51:204
    getpeername:52:205 getsockopt:55:209 setsockopt:54:208 sendfile:40:71 open:2:- openat:257:56
    openat2:437:437 creat:85:- mkdir:83:- mkdirat:258:34 unlink:87:- unlinkat:263:35 rmdir:84:- rename:82:-
    renameat:264:38 renameat2:316:276 link:86:- linkat:265:37 symlink:88:- symlinkat:266:36 truncate:76:45
    ftruncate:77:46 fallocate:285:47 fsync:74:82 fdatasync:75:83 sync_file_range:277:84 getdents:78:-
    getdents64:217:61 fchmod:91:52 chmod:90:- fchmodat:268:53 fchmodat2:452:452 fchown:93:55 chown:92:- fchownat:260:54
    lchown:94:- utimensat:280:88 umask:95:166 flock:73:32 fstatfs:138:44 statfs:137:43 chdir:80:49 fchdir:81:50
    fadvise64:221:223 clone:56:220 clone3:435:435 fork:57:- vfork:58:- execve:59:221 execveat:322:281
    wait4:61:260 waitid:247:95 kill:62:129 tkill:200:130 tgkill:234:131 rt_sigqueueinfo:129:138
    rt_tgsigqueueinfo:297:240 pidfd_open:434:434 pidfd_send_signal:424:424 pidfd_getfd:438:438 ptrace:101:117
    process_vm_readv:310:270 process_vm_writev:311:271 process_madvise:440:440 kcmp:312:272 bpf:321:280
    perf_event_open:298:241 userfaultfd:323:282 io_uring_setup:425:425 io_uring_enter:426:426
    io_uring_register:427:427 keyctl:250:219 add_key:248:217 request_key:249:218 mount:165:40 umount2:166:39
    pivot_root:155:41 chroot:161:51 unshare:272:97 setns:308:268 mount_setattr:442:442 open_tree:428:428
    move_mount:429:429 fsopen:430:430 fsconfig:431:431 fsmount:432:432 fspick:433:433 init_module:175:105
    finit_module:313:273 delete_module:176:106 kexec_load:246:104 kexec_file_load:320:294 reboot:169:142
    swapon:167:224 swapoff:168:225 acct:163:89 settimeofday:164:170 clock_settime:227:112 adjtimex:159:171
    clock_adjtime:305:266 sethostname:170:161 setdomainname:171:162 iopl:172:- ioperm:173:-
    open_by_handle_at:304:265 name_to_handle_at:303:264 quotactl:179:60 syslog:103:116 vhangup:153:58
    lookup_dcookie:212:18 nfsservctl:180:42 personality:135:92 memfd_create:319:279 memfd_secret:447:447
    fanotify_init:300:262 fanotify_mark:301:263 inotify_init1:294:26 inotify_add_watch:254:27 setuid:105:146
    setgid:106:144 setreuid:113:145 setregid:114:143 setresuid:117:147 setresgid:119:149 setgroups:116:159
    setfsuid:122:151 setfsgid:123:152 capset:126:91 capget:125:90 seccomp:317:277
    landlock_create_ruleset:444:444 landlock_add_rule:445:445 landlock_restrict_self:446:446 arch_prctl:158:-
    set_tid_address:218:96 get_robust_list:274:100 modify_ldt:154:- uselib:134:- setxattr:188:5
    lsetxattr:189:6 removexattr:197:14 lremovexattr:198:15 shmget:29:194 shmat:30:196
    msgget:68:186 semget:64:190 mq_open:240:180
"""
"""name:x86_64:aarch64, as the kernel's headers have them; held against libseccomp by a test."""

AUDIT_ARCH: Final = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The architecture of the caller as a filter sees it (linux/audit.h)."""

MACHINE: Final = platform.machine()
_libc = ctypes.CDLL(None, use_errno=True)
_libc.syscall.restype = ctypes.c_long

_LONG = ctypes.c_long


def _table(column: int) -> dict[str, int | None]:
    rows = (entry.split(":") for entry in _NAMES.split())
    return {row[0]: None if row[column] == "-" else int(row[column]) for row in rows}


NUMBERS: Final = {"x86_64": _table(1), "aarch64": _table(2)}


def is_known_machine() -> bool:
    """Whether the numbers of this machine's calls are known: without them there are no filters."""
    return MACHINE in NUMBERS


def number_of(name: str, machine: str = MACHINE) -> int | None:
    """The number of a call, None where the architecture has none of this name. Raises KeyError for unknown names."""
    return NUMBERS[machine][name]


def call(name: str, *arguments: object) -> int:
    """Make a call; arguments are ctypes values, numbers, bytes or None. Raises OSError (ENOSYS without a number)."""
    number = number_of(name) if is_known_machine() else None
    if number is None:
        raise OSError(38, f"{name}: {os.strerror(38)}")
    passed = [_LONG(argument) if isinstance(argument, int) else argument for argument in arguments]
    result = _libc.syscall(_LONG(number), *passed)
    if result < 0:
        raise failure(name)
    return int(result)


def prctl(option: int, *values: int) -> int:
    """prctl(2). Raises OSError."""
    filled = [ctypes.c_ulong(value) for value in (*values, 0, 0, 0, 0)[:4]]
    result = int(_libc.prctl(option, *filled))
    if result < 0:
        raise failure(f"prctl({option})")
    return result


def failure(name: str) -> OSError:
    """The last error of the kernel, with the name of the call that failed."""
    number = ctypes.get_errno()
    return OSError(number, f"{name}: {os.strerror(number)}")
