//! The socket to a server: connect, check the peer, send bytes with descriptors, receive frames.
//!
//! Must never decide what a frame means for the call.
//!
//! Invariant: no call blocks for longer than the timeout that is set.

use crate::syscall::{close, errno, open};
use core::ffi::c_int;
use unsnarl_wire::{REPLY_LEN, Reply};

/// Longest wait for a worker to be ready, in seconds. Under a burst of calls
/// the queue moves at the pace of forks, about a millisecond each.
const READY_TIMEOUT_S: i64 = 5;

/// Why the command did not run warm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Declined {
    /// No server listens there: worth starting one.
    NoServer,
    /// A server listens, but did not take this call.
    Refused,
    /// A server listens, and did not answer in time.
    Silent,
}

/// Connects to the socket at a path.
pub(super) fn connect(path: &[u8]) -> Result<c_int, Declined> {
    let is_long = path.len() >= size_of::<libc::sockaddr_un>() - size_of::<libc::sa_family_t>();
    if is_long {
        return connect_by_directory(path);
    }
    connect_to(path)
}

/// A socket address holds 107 bytes: a longer path goes through a descriptor of its directory.
fn connect_by_directory(path: &[u8]) -> Result<c_int, Declined> {
    let Some(slash) = path.iter().rposition(|b| *b == b'/') else {
        return Err(Declined::Refused);
    };
    let directory = open(&path[..slash], libc::O_PATH | libc::O_DIRECTORY, 0);
    let short = [format!("/proc/self/fd/{directory}").as_bytes(), &path[slash..]].concat();
    let socket = connect_to(&short);
    close(directory);
    socket
}

fn connect_to(path: &[u8]) -> Result<c_int, Declined> {
    let Some(address) = address(path) else {
        return Err(Declined::Refused);
    };
    // SAFETY: the address is a filled sockaddr_un, its size is given.
    unsafe {
        let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM | libc::SOCK_CLOEXEC, 0);
        if socket < 0 {
            return Err(Declined::Refused);
        }
        set_timeout(socket, READY_TIMEOUT_S);
        let size = size_of::<libc::sockaddr_un>() as libc::socklen_t;
        if libc::connect(socket, (&raw const address).cast(), size) == 0 {
            return Ok(socket);
        }
        let why = errno();
        close(socket);
        Err(match why {
            libc::ENOENT | libc::ECONNREFUSED => Declined::NoServer,
            libc::EAGAIN => Declined::Silent, // its queue is full
            _ => Declined::Refused,
        })
    }
}

fn address(path: &[u8]) -> Option<libc::sockaddr_un> {
    // SAFETY: all zeroes are a valid sockaddr_un.
    let mut address: libc::sockaddr_un = unsafe { core::mem::zeroed() };
    address.sun_family = libc::AF_UNIX as libc::sa_family_t;
    if path.len() >= address.sun_path.len() {
        return None;
    }
    for (to, from) in address.sun_path.iter_mut().zip(path) {
        *to = core::ffi::c_char::from_ne_bytes([*from]);
    }
    Some(address)
}

/// Limits every later receive and send; 0 seconds means no limit.
pub(super) fn set_timeout(socket: c_int, seconds: i64) {
    let time = libc::timeval {
        tv_sec: seconds,
        tv_usec: 0,
    };
    for option in [libc::SO_RCVTIMEO, libc::SO_SNDTIMEO] {
        // SAFETY: a valid timeval of the given size.
        unsafe {
            libc::setsockopt(
                socket,
                libc::SOL_SOCKET,
                option,
                (&raw const time).cast(),
                size_of_val(&time) as u32,
            );
        }
    }
}

/// Whether the peer is of this process's effective user.
pub(super) fn is_same_user(socket: c_int) -> bool {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut size = size_of_val(&peer) as libc::socklen_t;
    // SAFETY: peer is valid for writes of its size.
    let rc = unsafe {
        libc::getsockopt(
            socket,
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &mut size,
        )
    };
    // SAFETY: always succeeds.
    rc == 0 && peer.uid == unsafe { libc::geteuid() }
}

/// Sends all bytes; the descriptors go with the first ones.
pub(super) fn send(socket: c_int, bytes: &[u8], fds: &[c_int]) -> Option<()> {
    let mut rest = bytes;
    let mut attached = fds;
    while !rest.is_empty() {
        let sent = send_some(socket, rest, attached);
        if sent < 0 && errno() == libc::EINTR {
            continue;
        }
        rest = &rest[usize::try_from(sent).ok().filter(|n| *n > 0)?..];
        attached = &[];
    }
    Some(())
}

fn send_some(socket: c_int, bytes: &[u8], fds: &[c_int]) -> isize {
    let mut io = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    let payload = u32::try_from(size_of_val(fds)).unwrap_or(0);
    // SAFETY: arithmetic on a bounded number.
    let space = unsafe { libc::CMSG_SPACE(payload) } as usize;
    let mut control = vec![0u64; space.div_ceil(8)];
    // SAFETY: the message points to live buffers of the given sizes; the
    // control buffer is aligned for a cmsghdr and holds CMSG_SPACE bytes.
    unsafe {
        let mut message: libc::msghdr = core::mem::zeroed();
        message.msg_iov = &mut io;
        message.msg_iovlen = 1;
        if !fds.is_empty() {
            message.msg_control = control.as_mut_ptr().cast();
            message.msg_controllen = space as _; // the type is the C library's: musl has another
            let first = libc::CMSG_FIRSTHDR(&message);
            (*first).cmsg_level = libc::SOL_SOCKET;
            (*first).cmsg_type = libc::SCM_RIGHTS;
            (*first).cmsg_len = libc::CMSG_LEN(payload) as _;
            core::ptr::copy_nonoverlapping(fds.as_ptr(), libc::CMSG_DATA(first).cast(), fds.len());
        }
        libc::sendmsg(socket, &message, libc::MSG_NOSIGNAL)
    }
}

/// Why no frame was received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NoFrame {
    /// The peer has hung up.
    HungUp,
    /// The peer sent nothing in time.
    Silent,
    /// The peer sent an invalid frame.
    Unintelligible,
}

/// Receives one frame.
pub(super) fn receive(socket: c_int) -> Result<Reply, NoFrame> {
    let mut frame = [0u8; REPLY_LEN];
    let mut len = 0;
    while len < REPLY_LEN {
        // SAFETY: the rest of the frame is valid for writes.
        let n = unsafe { libc::recv(socket, frame[len..].as_mut_ptr().cast(), REPLY_LEN - len, 0) };
        match usize::try_from(n) {
            Ok(0) => return Err(NoFrame::HungUp),
            Ok(n) => len += n,
            Err(_) => match errno() {
                libc::EINTR => {}
                libc::ECONNRESET => return Err(NoFrame::HungUp),
                libc::EAGAIN if len == 0 => return Err(NoFrame::Silent),
                _ => return Err(NoFrame::Unintelligible),
            },
        }
    }
    Reply::decode(&frame).map_err(|_| NoFrame::Unintelligible)
}
