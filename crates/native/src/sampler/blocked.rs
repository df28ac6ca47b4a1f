//! Names what a thread waits for in a system call: a peer, a file, a pipe.
//!
//! `/proc/PID/task/TID/syscall` has the call's number and arguments while the thread is blocked, the links in
//! `/proc/PID/fd` name its descriptor, and the tables in `/proc/PID/net` the peer of a socket. Reading them neither
//! stops the thread nor wakes it.
//!
//! Must never: keep the name of a descriptor longer than a moment: descriptors are used again.

use super::modes::Modes;
use super::monotonic_ns;
use super::sockets::Sockets;
use std::fs::File;
use std::os::unix::fs::FileExt;

/// Calls whose first argument is the descriptor they wait for.
const ON_DESCRIPTOR: [libc::c_long; 15] = [
    libc::SYS_read,
    libc::SYS_write,
    libc::SYS_pread64,
    libc::SYS_pwrite64,
    libc::SYS_readv,
    libc::SYS_writev,
    libc::SYS_recvfrom,
    libc::SYS_sendto,
    libc::SYS_recvmsg,
    libc::SYS_sendmsg,
    libc::SYS_accept,
    libc::SYS_accept4,
    libc::SYS_connect,
    libc::SYS_fsync,
    libc::SYS_fdatasync,
];
/// The name of what a thread waits for that could run, if the kernel gives other threads its processor.
const PROCESSOR: &str = "a processor";
/// The name of a thread that waits for nothing, and computes without the GIL.
const COMPUTES: &str = "nothing, it computes";
/// The name of a wait for a descriptor among none: a pause that the program asks for.
const TIMEOUT: &str = "a timeout";
/// The name of a wait for a signal of the kernel's.
const SIGNAL: &str = "a signal";
/// The name of a socket of which no more is known.
const SOCKET: &str = "a socket";
/// The name of a wait in any other call, of which a share of the samples is: nobody knows what for.
const UNKNOWN: &str = "";

/// Names what the threads of one process wait for.
#[derive(Default)]
pub(super) struct Names {
    sockets: Sockets,
    modes: Modes,
}

impl Names {
    /// What this thread waits for; `None` if it has ended, or its system calls cannot be read.
    ///
    /// A thread that could run waits for a processor if it has lacked one. If it has not, it computes in C code, or the
    /// kernel works for it.
    pub(super) fn of_thread(&mut self, memory: &File, pid: u32, tid: u32, has_lacked: bool) -> Option<String> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
        let mut words = text.split_ascii_whitespace();
        let word = words.next()?;
        if word == "running" {
            let name = if has_lacked {
                PROCESSOR
            } else if self.modes.computes(pid, tid, monotonic_ns()) {
                COMPUTES
            } else {
                UNKNOWN
            };
            return Some(name.into());
        }
        let call: libc::c_long = word.parse().ok()?;
        let mut argument = || u64::from_str_radix(words.next()?.trim_start_matches("0x"), 16).ok();
        let first = argument()?;
        if call < 0 && first == 0 {
            return None; // a thread without a stack: it has exited, and nobody has waited for its process yet
        }
        let descriptor = if ON_DESCRIPTOR.contains(&call) {
            first as i32
        } else {
            // Outside a call there are two words: those of the stack and of the code.
            let mut argument = || argument().unwrap_or(0);
            match chosen(
                memory,
                pid,
                call,
                [first, argument(), argument(), argument(), argument()],
            ) {
                Some(Choice::One(descriptor)) => descriptor,
                Some(Choice::Several) => return Some(UNKNOWN.into()),
                Some(Choice::Nothing(what)) => return Some(what.into()),
                None => return Some(of_call(call).into()),
            }
        };
        let link = std::fs::read_link(format!("/proc/{pid}/fd/{descriptor}")).ok()?;
        Some(self.name(pid, &link.to_string_lossy()))
    }

    fn name(&mut self, pid: u32, link: &str) -> String {
        if let Some(inode) = link.strip_prefix("socket:[").and_then(|rest| rest.strip_suffix(']')) {
            return self.sockets.name(pid, inode).unwrap_or_else(|| SOCKET.into());
        }
        if link.starts_with("pipe:") {
            return "a pipe".into();
        }
        if link.starts_with("anon_inode:[eventfd]") {
            return "a notice (eventfd)".into();
        }
        if link.starts_with("/dev/pts/") || link == "/dev/tty" {
            return "the terminal".into();
        }
        link.into()
    }
}

/// What a call waits for that has no descriptor.
fn of_call(call: libc::c_long) -> &'static str {
    match call {
        libc::SYS_wait4 | libc::SYS_waitid => "a child process",
        libc::SYS_nanosleep | libc::SYS_clock_nanosleep => "a pause in C code",
        libc::SYS_futex => "a lock in C code",
        libc::SYS_flock | libc::SYS_fcntl => "the lock of a file",
        libc::SYS_rt_sigtimedwait | libc::SYS_rt_sigsuspend => SIGNAL,
        libc::SYS_msgrcv | libc::SYS_msgsnd | libc::SYS_mq_timedreceive | libc::SYS_mq_timedsend => "a message queue",
        libc::SYS_semop | libc::SYS_semtimedop => "a semaphore of System V",
        #[cfg(target_arch = "x86_64")]
        libc::SYS_pause => SIGNAL,
        _ => UNKNOWN,
    }
}

/// What a call that waits for any of several descriptors waits for.
enum Choice {
    One(i32),
    /// One of several, or it cannot be read which.
    Several,
    /// None at all: the call only lets time pass, or waits for a signal.
    Nothing(&'static str),
}

/// The descriptors of a call that waits for any of several; `None` if it is another call.
fn chosen(memory: &File, pid: u32, call: libc::c_long, arguments: [u64; 5]) -> Option<Choice> {
    let [first, second, third, fourth, fifth] = arguments;
    if is_poll(call) {
        return Some(match second {
            // aarch64 has no `pause`: glibc calls `ppoll` without an end there.
            0 if call == libc::SYS_ppoll && third == 0 => Choice::Nothing(SIGNAL),
            0 if call != libc::SYS_ppoll && (third as i32) < 0 => Choice::Nothing(SIGNAL),
            0 => Choice::Nothing(TIMEOUT),
            1 => polled(memory, first).map_or(Choice::Several, Choice::One),
            _ => Choice::Several,
        });
    }
    if is_select(call) {
        return Some(match first {
            0 if fifth == 0 => Choice::Nothing(SIGNAL),
            0 => Choice::Nothing(TIMEOUT),
            count => only(selected(memory, count, [second, third, fourth])),
        });
    }
    is_epoll(call).then(|| only(registered(pid, first as i32)))
}

fn only(descriptors: Option<Vec<i32>>) -> Choice {
    match descriptors.as_deref() {
        Some(&[descriptor]) => Choice::One(descriptor),
        _ => Choice::Several,
    }
}

fn is_poll(call: libc::c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if call == libc::SYS_poll {
        return true;
    }
    call == libc::SYS_ppoll
}

fn is_select(call: libc::c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if call == libc::SYS_select {
        return true;
    }
    call == libc::SYS_pselect6
}

fn is_epoll(call: libc::c_long) -> bool {
    #[cfg(target_arch = "x86_64")]
    if call == libc::SYS_epoll_wait {
        return true;
    }
    call == libc::SYS_epoll_pwait || call == libc::SYS_epoll_pwait2
}

/// The descriptor in a `struct pollfd`, as CPython polls one socket with a timeout.
fn polled(memory: &File, at: u64) -> Option<i32> {
    let mut bytes = [0; 4];
    memory.read_exact_at(&mut bytes, at).ok()?;
    Some(i32::from_ne_bytes(bytes))
}

/// The descriptors in the sets of a `select`: the kernel writes to them when the call ends.
fn selected(memory: &File, count: u64, sets: [u64; 3]) -> Option<Vec<i32>> {
    let mut bytes = [0; libc::FD_SETSIZE / 8];
    // The kernel reads whole words.
    let length = (count.min(libc::FD_SETSIZE as u64) as usize).div_ceil(64) * 8;
    let mut union = [0; libc::FD_SETSIZE / 8];
    for set in sets.into_iter().filter(|&set| set != 0) {
        memory.read_exact_at(&mut bytes[..length], set).ok()?;
        for (into, byte) in union.iter_mut().zip(&bytes[..length]) {
            *into |= byte;
        }
    }
    let is_set = |descriptor: &i32| union[*descriptor as usize / 8] >> (descriptor % 8) & 1 == 1;
    Some((0..length as i32 * 8).filter(is_set).collect())
}

/// The descriptors that are registered with an epoll instance.
fn registered(pid: u32, epoll: i32) -> Option<Vec<i32>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/fdinfo/{epoll}")).ok()?;
    let words = text
        .lines()
        .filter_map(|line| line.strip_prefix("tfd:")?.split_ascii_whitespace().next());
    words.map(|word| word.parse().ok()).collect()
}
