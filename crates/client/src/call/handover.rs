//! The hand-over of a call to a worker: connect, check the peer, send the request, wait for the end.
//!
//! | state | on failure |
//! |---|---|
//! | no connection | a server may be started; the caller runs the command plainly |
//! | connected, request sent, not yet `Ready` | the connection is closed; the caller runs the command plainly |
//! | `Ready`, `GO` sent | point of no return: wait, then end as the worker ended |
//!
//! Invariant: [`run`] returns only before `GO` was sent.

use super::connection::{Declined, NoFrame, connect, is_same_user, receive, send, set_timeout};
use super::inherited;
use super::relay;
use crate::syscall::{self, Bytes, close, complain, exit, open};
use core::ffi::c_int;
use unsnarl_wire::{GO, Header, MAX_FDS, Reply, Request};

/// How many times a call is offered: a server that is replaced drops the calls in its queue.
const ATTEMPTS: usize = 3;

/// The outcome of an offer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Offer {
    /// A worker has taken the call: the point of no return.
    Taken,
    /// No worker took the call, or it cannot be offered.
    Declined,
    /// The peer hung up without a reply.
    Gone,
    /// The peer did not reply in time.
    Silent,
}

/// One call.
pub(crate) struct Call<'a> {
    pub(crate) socket: &'a [u8],
    pub(crate) key: Bytes,
    pub(crate) args: &'a [Bytes],
    pub(crate) environ: &'a [Bytes],
    /// Whether the server lives in this session.
    pub(crate) shares_terminal: bool,
}

/// Runs the command in a worker and ends as it ends, or returns why it did not run.
pub(crate) fn run(call: Call<'_>) -> Declined {
    for _ in 0..ATTEMPTS {
        let socket = match connect(call.socket) {
            Ok(socket) => socket,
            Err(why) => return why,
        };
        let outcome = offer(socket, &call);
        if outcome == Offer::Taken {
            wait(socket);
        }
        close(socket);
        if outcome == Offer::Silent {
            return Declined::Silent;
        }
        if outcome != Offer::Gone {
            break;
        }
    }
    Declined::Refused
}

/// Whether a worker at the path would take a request now: sends an empty request.
pub(crate) fn is_served(path: &[u8]) -> bool {
    let Ok(socket) = connect(path) else { return false };
    // SAFETY: socket is open; a failure shows in the answer.
    unsafe { libc::shutdown(socket, libc::SHUT_WR) };
    let answer = receive(socket);
    close(socket);
    matches!(answer, Ok(Reply::Ready(_)))
}

/// Offers the request and waits for `Ready`; unless a worker takes it, nothing has run.
fn offer(socket: c_int, call: &Call<'_>) -> Offer {
    if !is_same_user(socket) {
        return Offer::Declined;
    }
    let Some((message, attached)) = message(socket, call) else {
        return Offer::Declined;
    };
    let is_sent = send(socket, &message, &attached).is_some();
    close(attached[0]);
    match receive(socket) {
        Ok(Reply::Ready(worker)) if is_sent => commit(socket, worker, call.shares_terminal),
        Err(NoFrame::HungUp) => Offer::Gone,
        Err(NoFrame::Silent) => Offer::Silent,
        _ => Offer::Declined,
    }
}

fn commit(socket: c_int, worker: c_int, shares_terminal: bool) -> Offer {
    let Some(handle) = relay::aim(worker, shares_terminal) else {
        return Offer::Declined;
    };
    // Blocks signals between the byte and the handlers. If the byte cannot be sent, the plain command inherits the
    // dispositions and the mask unchanged.
    let mask = relay::hold_signals();
    if send(socket, &[GO], &[]).is_none() {
        relay::release_signals(&mask);
        return Offer::Gone;
    }
    relay::install();
    inherited::close_all_but([socket, handle, libc::STDERR_FILENO]);
    Offer::Taken
}

/// Returns the bytes of the request, and the descriptors that go with them, the directory first.
fn message(socket: c_int, call: &Call<'_>) -> Option<(Vec<u8>, Vec<c_int>)> {
    let directory = open(b".", libc::O_PATH | libc::O_DIRECTORY, 0);
    let fds = inherited::descriptors(&[socket, directory])?;
    if directory < 0 || fds.len() + 1 > MAX_FDS {
        return None;
    }
    let signals = inherited::signals();
    let body = Request {
        key: call.key.clone(),
        argv: call.args.to_vec(),
        environ: call.environ.to_vec(),
        fds: fds.iter().map(|fd| fd.cast_unsigned()).collect(),
        umask: syscall::umask(),
        ignored: signals.ignored,
        blocked: signals.blocked,
        limits: inherited::soft_limits()?,
    }
    .encode();
    let header = Header {
        fd_count: u16::try_from(fds.len() + 1).ok()?,
        body_len: u32::try_from(body.len()).ok()?,
    };
    let attached = [directory].into_iter().chain(fds).collect();
    Some(([&header.encode().ok()?[..], &body].concat(), attached))
}

/// Waits for the end of the worker and ends in the same way.
fn wait(socket: c_int) -> ! {
    let mut leaving = None;
    // Seconds until the next check for a pipe that the worker has closed; 0 for none.
    let mut check_s = i64::from(!inherited::is_file_or_device(libc::STDERR_FILENO));
    set_timeout(socket, check_s);
    loop {
        match receive(socket) {
            Ok(Reply::Stopped(_)) => relay::stop(socket),
            Ok(Reply::Leaving(status)) => leaving = Some(status),
            Ok(Reply::Ended(status)) => relay::end_as(status),
            Ok(Reply::Ready(_) | Reply::Refused(_)) => {}
            Err(NoFrame::Silent) => {
                check_s = if relay::has_stderr() { check_s * 2 } else { 0 };
                if check_s == 0 {
                    close(libc::STDERR_FILENO);
                }
                set_timeout(socket, check_s);
            }
            Err(_) => break,
        }
    }
    if let Some(status) = leaving {
        relay::end_as(status);
    }
    complain(
        "error: the worker and its server are gone; how the command ended is unknown\nhint: `unsnarl warm logs` may tell why\n",
    );
    exit(255)
}
