//! Hash tables that all threads share: lines of Python, stacks, names of threads.
//!
//! Must never: search without a bound. An entry that finds no room is left out; a stack that is
//! left out is counted.
//! Invariant: there is one writer at a time, the thread that holds the GIL (or that drops or
//! takes it, with its mutex held).

use super::buffer::{count, epoch, set32, set64, since_start, word, write_text};
use super::counter;
use super::writer::with_writer;
use crate::clock;
use std::sync::atomic::Ordering::Relaxed;
use unsnarl_trace::layout::{self, header};
use unsnarl_trace::record::Kind;

/// Indices that are tried for an entry.
const PROBES: usize = 32;

/// The description of a line.
pub(super) trait Describe {
    /// The line's number.
    fn line(&self) -> u32;
    /// The bytes of the file's path.
    fn file(&self) -> impl Iterator<Item = u8>;
    /// The bytes of the function's name.
    fn function(&self) -> impl Iterator<Item = u8>;
    /// How many bytes to skip at the beginning of the path.
    fn skip(&self) -> usize;
}

/// Mixes a word into a fingerprint (the finaliser of splitmix64).
pub(super) fn mix(fingerprint: u64, value: u64) -> u64 {
    let mut mixed = fingerprint ^ value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
    (mixed ^ mixed >> 31).max(1)
}

/// The number of a location, from one, which is written if it is new; 0 if there is no room.
pub(super) fn location(fingerprint: u64, kind: u32, describe: &impl Describe) -> u32 {
    for probe in 0..PROBES {
        let index = (fingerprint as usize).wrapping_add(probe) % layout::LOCATIONS;
        let at = layout::LOCATIONS_AT + index * layout::LOCATION_SIZE;
        let Some(entry) = word(at) else { return 0 };
        let found = entry.load(Relaxed);
        if found == 0 {
            set32(at + layout::LOCATION_LINE, describe.line());
            set32(at + layout::LOCATION_KIND, kind);
            let file = describe.file().skip(describe.skip());
            write_text(at + layout::LOCATION_FILE, layout::FILE_SIZE, file);
            write_text(
                at + layout::LOCATION_FUNCTION,
                layout::FUNCTION_SIZE,
                describe.function(),
            );
            set64(at, fingerprint);
        }
        if found == 0 || found == fingerprint {
            return index as u32 + 1;
        }
    }
    0
}

/// The number of the node of these locations, the innermost first; 0 if there are none, or no room for one.
pub(super) fn stack(locations: &[u32]) -> u32 {
    locations
        .iter()
        .rev()
        .try_fold(0, |parent, &location| match node(parent, location) {
            0 => None,
            node => Some(node),
        })
        .unwrap_or(0)
}

/// The number of the node with this parent and location, from one; 0 if there is no room.
fn node(parent: u32, location: u32) -> u32 {
    let key = u64::from(parent) << 32 | u64::from(location);
    let hash = mix(0, key) as usize;
    for probe in 0..PROBES {
        let index = hash.wrapping_add(probe) % layout::NODES;
        let at = layout::NODES_AT + index * layout::NODE_SIZE;
        let Some(entry) = word(at) else { return 0 };
        let found = entry.load(Relaxed);
        if found == 0 {
            set64(at, key);
        }
        if found == 0 || found == key {
            return index as u32 + 1;
        }
    }
    0
}

/// Counts a stack that was not taken.
pub(super) fn leave_stack_out() {
    count(header::STACKS_LEFT_OUT, 1);
}

/// Records the name of a thread; the latest names are kept. The GIL is held.
pub fn name_thread(ident: u64, name: &str) {
    if epoch() == 0 || ident == 0 {
        return;
    }
    let index = count(header::NAMES, 1) as usize % layout::NAMES;
    let at = layout::NAMES_AT + index * layout::NAME_SIZE;
    set64(at, 0);
    set64(at + 8, since_start(counter::now()));
    write_text(
        at + layout::NAME_TEXT,
        layout::NAME_TEXT_SIZE,
        whole_characters(name, layout::NAME_TEXT_SIZE - 1).bytes(),
    );
    set64(at, ident);
}

/// The beginning of a text, cut between two characters.
fn whole_characters(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

struct Module<'a>(&'a str);

impl Describe for Module<'_> {
    fn line(&self) -> u32 {
        0
    }
    fn file(&self) -> impl Iterator<Item = u8> {
        whole_characters(self.0, layout::FILE_SIZE - 1).bytes()
    }
    fn function(&self) -> impl Iterator<Item = u8> {
        std::iter::empty()
    }
    fn skip(&self) -> usize {
        0
    }
}

/// Records that the calling thread begins to import a module. The GIL is held.
pub fn import_begins(module: &str) {
    if epoch() == 0 {
        return;
    }
    let fingerprint = module.bytes().fold(1, |mixed, byte| mix(mixed, u64::from(byte)));
    let number = location(fingerprint, 1, &Module(module));
    let processor_us = u64::from(processor_us());
    with_writer(|own| {
        own.push(
            Kind::ImportBegin,
            u64::from(number) | processor_us << 32,
            counter::now(),
        )
    });
}

/// Records that the import begun last has ended. The GIL is held.
pub fn import_ends() {
    with_writer(|own| own.push(Kind::ImportEnd, u64::from(processor_us()), counter::now()));
}

/// The thread's processor time in microseconds, without the upper bits.
fn processor_us() -> u32 {
    (clock::processor_time() / 1000) as u32
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::buffer::{Destination, create, finish};
    use std::os::unix::ffi::OsStrExt;

    /// One test for both tables: the file is the process's.
    #[test]
    fn what_finds_no_room_has_no_number_and_no_stack() {
        let path = std::env::temp_dir().join(format!("unsnarl-tables-{}", std::process::id()));
        let destination = Destination {
            path: std::ffi::CString::new(path.as_os_str().as_bytes()).unwrap(),
            chunks: 1,
            text: String::new(),
            executed_ns: 0,
            interval_ns: 0,
            has_counter: false,
            has_parked_locks: false,
        };
        create(&destination, false).unwrap();
        let describe = |number: u32| location(mix(3, u64::from(number)), 0, &Module("module"));
        let most = 4 * layout::LOCATIONS as u32;
        let first = (1..most).find(|&number| describe(number) == 0).unwrap();
        assert_eq!((describe(first), describe(first - 1) != 0), (0, true));
        let most = 4 * layout::NODES as u32;
        let full = (1..most).find(|&location| stack(&[location]) == 0).unwrap();
        let outer = stack(&[1]);
        assert!(outer != 0 && stack(&[1]) == outer);
        // Neither the caller's stack nor a part of this stack is returned for it.
        assert_eq!((stack(&[1, full]), stack(&[])), (0, 0));
        let inner = (1..most).find(|&location| stack(&[location, 1]) == 0).unwrap();
        assert_eq!(stack(&[2, inner, 1]), 0);
        finish();
        std::fs::remove_file(path).unwrap();
    }
}
