//! Names the sockets of a process: their peers, as far as the kernel's tables tell them.
//!
//! A table of a machine with many connections that have just ended takes a tenth of a second to read, so one is read
//! again only after [`PAUSE_SHARE`] times what it has cost. Until then a new socket has no name. The tables are those of
//! the process's network, which need not be the sampler's.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::sampler::{monotonic_ns, processor_ns};

/// The tables of `/proc/PID/net`, the one that is read fastest first.
const TABLES: [&str; 5] = ["unix", "tcp", "tcp6", "udp", "udp6"];
/// States in the tables: a connection that has ended, whose socket is nobody's, and a listening one.
const TIME_WAIT: &str = "06";
const LISTENING: &str = "0A";
/// Sockets of one table that are named.
const MOST: usize = 1 << 16;

/// How long what a table says of a socket is taken for true, in nanoseconds: a socket may be connected to another peer.
const FRESH_NS: u64 = 1_000_000_000;
/// The pause after a read, in times of the processor time that it took.
const PAUSE_SHARE: u64 = 20;

/// What is known of the sockets of a process.
#[derive(Default)]
pub(super) struct Sockets {
    tables: [Table; TABLES.len()],
}

/// Names by inode, of the sockets of one table.
#[derive(Default)]
struct Table {
    names: HashMap<String, String>,
    read_ns: Option<u64>,
    due_ns: u64,
}

impl Table {
    /// The name of a socket; `None` if the table has to be read for it.
    fn known(&self, inode: &str, now_ns: u64) -> Option<&str> {
        let is_fresh = now_ns.saturating_sub(self.read_ns?) < FRESH_NS;
        if is_fresh || now_ns < self.due_ns {
            self.names.get(inode).map(String::as_str)
        } else {
            None
        }
    }

    fn is_due(&self, now_ns: u64) -> bool {
        self.read_ns.is_none() || now_ns >= self.due_ns
    }

    fn take(&mut self, names: HashMap<String, String>, now_ns: u64, cost_ns: u64) {
        self.names = names;
        self.read_ns = Some(now_ns);
        self.due_ns = now_ns.saturating_add(cost_ns.saturating_mul(PAUSE_SHARE));
    }
}

impl Sockets {
    /// The name of a socket of this process.
    pub(super) fn name(&mut self, pid: u32, inode: &str) -> Option<String> {
        self.look_up(inode, monotonic_ns(), |table| {
            let began_ns = processor_ns();
            let names = read(pid, table);
            (names, processor_ns().saturating_sub(began_ns))
        })
    }

    /// `read` returns the names of a table, and the processor time in nanoseconds that reading it took.
    fn look_up(
        &mut self,
        inode: &str,
        now_ns: u64,
        mut read: impl FnMut(&str) -> (HashMap<String, String>, u64),
    ) -> Option<String> {
        if let Some(name) = self.tables.iter().find_map(|table| table.known(inode, now_ns)) {
            return Some(name.to_owned());
        }
        for (table, which) in self.tables.iter_mut().zip(TABLES) {
            if table.is_due(now_ns) {
                let (names, cost_ns) = read(which);
                table.take(names, now_ns, cost_ns);
            }
            if let Some(name) = table.names.get(inode) {
                return Some(name.clone());
            }
        }
        None
    }
}

fn read(pid: u32, table: &str) -> HashMap<String, String> {
    let Ok(file) = File::open(format!("/proc/{pid}/net/{table}")) else {
        return HashMap::new();
    };
    entries(table, BufReader::with_capacity(1 << 16, file))
}

/// The entries of a table; the path of a Unix socket may be any bytes.
fn entries(table: &str, file: impl BufRead) -> HashMap<String, String> {
    file.split(b'\n')
        .map_while(Result::ok)
        .skip(1)
        .filter_map(|line| entry(table, &String::from_utf8_lossy(&line)))
        .take(MOST)
        .collect()
}

/// The inode of the socket that a line of a table is about, and its name.
fn entry(table: &str, line: &str) -> Option<(String, String)> {
    let mut words = line.split_ascii_whitespace();
    if table == "unix" {
        return Some((words.nth(6)?.to_owned(), "a Unix socket".to_owned()));
    }
    let (local, remote, state) = (words.nth(1)?, words.next()?, words.next()?);
    let inode = words.nth(5)?;
    if state == TIME_WAIT || inode == "0" {
        return None;
    }
    let (what, end) = if state == LISTENING {
        ("connections at ", local)
    } else if is_unset(remote) {
        ("packets at ", local)
    } else {
        ("", remote)
    };
    Some((inode.to_owned(), format!("{what}{}", address(end)?)))
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

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    /// Tables whose reads are counted: the tcp table has the sockets named here.
    struct Kernel {
        tcp: Vec<&'static str>,
        cost_ns: u64,
        reads: Vec<String>,
    }

    impl Kernel {
        fn look_up(&mut self, sockets: &mut Sockets, inode: &str, now_ns: u64) -> Option<String> {
            let Self { tcp, cost_ns, reads } = self;
            sockets.look_up(inode, now_ns, |table| {
                reads.push(table.to_owned());
                let own: &[&str] = if table == "tcp" { tcp } else { &[] };
                let named = own.iter().map(|&inode| (inode.to_owned(), format!("peer of {inode}")));
                (named.collect(), *cost_ns)
            })
        }
    }

    #[test]
    fn a_path_that_is_no_text_ends_no_table() {
        let table = b"Num RefCount Protocol Flags Type St Inode Path\n\
            0: 00000002 00000000 00010000 0001 01 11 /run/caf\xe9\n\
            0: 00000002 00000000 00010000 0001 01 12 /run/db\n";
        let found = entries("unix", &table[..]);
        assert_eq!((found.len(), found.contains_key("12")), (2, true));
    }

    #[test]
    fn a_table_is_read_no_further_than_to_the_socket_and_not_again_while_it_is_fresh() {
        let mut kernel = Kernel {
            tcp: vec!["7"],
            cost_ns: 0,
            reads: Vec::new(),
        };
        let mut sockets = Sockets::default();
        for now_ns in [SECOND, SECOND + FRESH_NS - 1] {
            assert_eq!(kernel.look_up(&mut sockets, "7", now_ns).as_deref(), Some("peer of 7"));
        }
        assert_eq!(kernel.reads, ["unix", "tcp"]);
        kernel.look_up(&mut sockets, "7", SECOND + FRESH_NS);
        assert_eq!(kernel.reads, ["unix", "tcp", "unix", "tcp"]);
    }

    #[test]
    fn after_a_read_that_was_dear_an_unknown_socket_has_no_name_until_it_has_paid() {
        let mut kernel = Kernel {
            tcp: vec!["7"],
            cost_ns: SECOND / 10,
            reads: Vec::new(),
        };
        let mut sockets = Sockets::default();
        kernel.look_up(&mut sockets, "8", SECOND);
        assert_eq!(kernel.reads.len(), TABLES.len());
        kernel.tcp.push("8");
        let due_ns = SECOND + kernel.cost_ns * PAUSE_SHARE;
        assert_eq!(kernel.look_up(&mut sockets, "8", due_ns - 1), None);
        assert_eq!(
            kernel.look_up(&mut sockets, "7", due_ns - 1).as_deref(),
            Some("peer of 7")
        );
        assert_eq!(kernel.reads.len(), TABLES.len());
        assert_eq!(kernel.look_up(&mut sockets, "8", due_ns).as_deref(), Some("peer of 8"));
    }

    #[test]
    fn lines_of_the_tables_have_names_and_connections_that_have_ended_none() {
        let tcp = |addresses: &str, state: &str, inode: &str| {
            entry(
                "tcp",
                &format!("   1: {addresses} {state} 00000000:00000000 00:00000000 00000000     0        0 {inode} 1 0"),
            )
        };
        let named = |inode: &str, name: &str| Some((inode.to_owned(), name.to_owned()));
        let (connected, listens) = ("0100007F:A000 0100007F:1538", "0100007F:1538 00000000:0000");
        assert_eq!(tcp(connected, "01", "17"), named("17", "127.0.0.1:5432"));
        assert_eq!(tcp(listens, "0A", "18"), named("18", "connections at 127.0.0.1:5432"));
        assert_eq!(tcp(listens, "07", "19"), named("19", "packets at 127.0.0.1:5432"));
        assert_eq!(tcp(connected, "06", "0"), None);
        assert_eq!(tcp(connected, "01", "0"), None);
        let unix = "000000003a904952: 00000003 00000000 00000000 0005 03 17037513 /run/x";
        assert_eq!(entry("unix", unix), named("17037513", "a Unix socket"));
        assert_eq!(entry("tcp", "no line of a table"), None);
    }
}
