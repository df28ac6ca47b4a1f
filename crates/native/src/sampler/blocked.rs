//! Names what a thread waits for in a system call: a peer, a file, a pipe.
//!
//! `/proc/PID/task/TID/syscall` has the call's number and arguments while the thread is blocked, the links in
//! `/proc/PID/fd` name its descriptor, and the tables in `/proc/PID/net` the peer of a socket. Reading them neither
//! stops the thread nor wakes it.
//!
//! Must never: keep a name longer than a moment: descriptors are used again.

use std::collections::HashMap;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
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
/// The name of a wait for a descriptor among none: a pause that the program asks for.
const TIMEOUT: &str = "a timeout";
/// The name of a wait for a signal of the kernel's.
const SIGNAL: &str = "a signal";
/// The name of a wait in any other call, of which a share of the samples is: nobody knows what for.
const UNKNOWN: &str = "";
/// A listening socket, in the tables of sockets.
const LISTENING: &str = "0A";
/// The longest table of sockets that is read.
const TABLE_MAX: usize = 4 << 20;

/// The names of one round: a descriptor's name is looked up once a round.
#[derive(Default)]
pub(super) struct Names {
    sockets: Option<HashMap<String, String>>,
}

impl Names {
    /// What this thread waits for; `None` if it has ended, or its system calls cannot be read.
    ///
    /// A thread that could run waits for a processor if it has lacked one. If it has not, the kernel works for it.
    pub(super) fn of_thread(&mut self, memory: &File, pid: u32, tid: u32, has_lacked: bool) -> Option<String> {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
        let mut words = text.split_ascii_whitespace();
        let word = words.next()?;
        if word == "running" {
            return Some(if has_lacked { PROCESSOR } else { UNKNOWN }.into());
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
            let sockets = self.sockets.get_or_insert_with(|| sockets_of(pid));
            return sockets.get(inode).cloned().unwrap_or_else(|| "a socket".into());
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

/// Names by inode, of all sockets of the process's network.
fn sockets_of(pid: u32) -> HashMap<String, String> {
    let mut names = HashMap::new();
    for table in ["tcp", "tcp6", "udp", "udp6"] {
        let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/net/{table}")) else {
            continue;
        };
        for line in text
            .get(..text.len().min(TABLE_MAX))
            .unwrap_or_default()
            .lines()
            .skip(1)
        {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            if let [_, local, remote, state, _, _, _, _, _, inode, ..] = words[..] {
                let (words, end) = if state == LISTENING {
                    ("connections at ", local)
                } else if is_unset(remote) {
                    ("packets at ", local)
                } else {
                    ("", remote)
                };
                if let Some(address) = address(end) {
                    names.insert(inode.to_owned(), format!("{words}{address}"));
                }
            }
        }
    }
    if let Ok(text) = std::fs::read_to_string(format!("/proc/{pid}/net/unix")) {
        for line in text.lines().skip(1) {
            let words: Vec<&str> = line.split_ascii_whitespace().collect();
            if let Some(inode) = words.get(6) {
                names.insert((*inode).to_owned(), "a Unix socket".into());
            }
        }
    }
    names
}

/// Whether an address as the kernel prints it is that of a socket that is connected to none.
fn is_unset(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0' | b':'))
}

/// An address as the kernel prints it: words of the machine's byte order in hexadecimal, and the port.
fn address(text: &str) -> Option<String> {
    let (host, port) = text.split_once(':')?;
    let port = u16::from_str_radix(port, 16).ok()?;
    let mut bytes = Vec::with_capacity(16);
    for at in (0..host.len()).step_by(8) {
        bytes.extend(u32::from_str_radix(host.get(at..at + 8)?, 16).ok()?.to_ne_bytes());
    }
    let host: IpAddr = if let Ok(bytes) = <[u8; 4]>::try_from(&bytes[..]) {
        Ipv4Addr::from(bytes).into()
    } else {
        Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?).to_canonical()
    };
    Some(match host {
        IpAddr::V4(host) => format!("{host}:{port}"),
        IpAddr::V6(host) => format!("[{host}]:{port}"),
    })
}
