//! Replaces and restores the function pointers in relocation slots.
//!
//! Invariants: `restore` leaves every slot with the bytes and every page with
//! the protection it had before `replace`; a slot is written with one aligned
//! store, so a concurrent call sees the old or the new function.

use super::object::LoadedObject;
use super::original::{Original, address_of};
use crate::error::Unsupported;
use procfs_core::FromBufRead;
use procfs_core::process::{MMPermissions, MemoryMaps};
use std::sync::atomic::{AtomicPtr, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};

/// A function of libc and the hook that replaces it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Replacement {
    /// Symbol name.
    name: &'static str,
    /// Address of the hook.
    ours: usize,
    /// Address of libc's function, as this library is linked to it.
    theirs: usize,
    /// Word of the hook's [`Original`].
    original: &'static AtomicPtr<()>,
    /// Whether an object without a slot for it is refused.
    is_required: bool,
}

impl Replacement {
    /// Pairs a hook with its original, of the same signature `F`.
    pub(crate) fn new<F: Copy>(name: &'static str, original: &'static Original<F>, hook: F, is_required: bool) -> Self {
        Self {
            name,
            ours: address_of(hook) as usize,
            theirs: original.libc(),
            original: original.word(),
            is_required,
        }
    }

    /// With this address of libc's function, to which this library is not linked.
    pub(crate) fn with_libc(self, address: Option<usize>) -> Self {
        Self {
            theirs: address.unwrap_or(self.theirs),
            ..self
        }
    }

    /// Stores the function to call instead of a slot's present `value`; returns the
    /// value that restores the slot.
    ///
    /// A slot that still holds the hook was left behind by an earlier installation (a fork
    /// in the middle of one, a page that could not be written), which has stored the original.
    fn keep_original(&self, value: usize, object: &LoadedObject) -> usize {
        if value == self.ours {
            // ORDERING: SeqCst, though no order is needed: it pairs with the store below, of an
            // earlier call by a thread that held the installation guard.
            return self.original.load(SeqCst) as usize;
        }
        // A slot that points back into its own object is not bound yet.
        let is_bound = value != 0 && !object.contains(value);
        let original = if is_bound { value } else { self.theirs };
        // ORDERING: SeqCst orders this before the store to the slot in `write`, whose partner is the
        // processor's load of the slot at a call: the hook finds the original.
        self.original.store(original as *mut (), SeqCst);
        value
    }
}

#[derive(Debug)]
struct Slot {
    address: usize,
    before: usize,
    ours: usize,
    /// Protection of its page, as it was when the slot was found.
    protection: libc::c_int,
}

/// A set of slots that are replaced and restored together.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
}

impl Slots {
    /// Finds the slots of all `replacements` in `object`, and stores the original of each.
    pub(crate) fn find(object: &LoadedObject, replacements: &[Replacement]) -> Result<Self, Unsupported> {
        let protections = Protections::read()?;
        let names: Vec<_> = replacements.iter().map(|replacement| replacement.name).collect();
        let found = object.slots(&names).map_err(|_| {
            Unsupported::new(
                "the interpreter's dynamic tables are malformed",
                "report it with the output of `readelf -dr`",
            )
        })?;
        let mut slots = Vec::new();
        for (replacement, addresses) in replacements.iter().zip(found) {
            if addresses.is_empty() && replacement.is_required {
                return Err(Unsupported::new(
                    format!(
                        "this interpreter does not reference {} through its GOT",
                        replacement.name
                    ),
                    "use a build that is linked dynamically to its C library",
                ));
            }
            for address in addresses {
                let before = replacement.keep_original(slot(address).load(Relaxed), object);
                slots.push(Slot {
                    address,
                    before,
                    ours: replacement.ours,
                    protection: protections.of(address),
                });
            }
        }
        Ok(Self { slots })
    }

    /// Adds the slots of `other`.
    pub(crate) fn append(&mut self, other: Self) {
        self.slots.extend(other.slots);
    }

    /// Points every slot to its hook.
    pub(crate) fn replace(&self) -> Result<(), Unsupported> {
        self.write(|slot| slot.ours)
    }

    /// Restores the former value of every slot.
    pub(crate) fn restore(&self) -> Result<(), Unsupported> {
        self.write(|slot| slot.before)
    }

    /// Whether every slot still points to its hook: no late fix-up of the dynamic linker has
    /// overwritten one.
    pub(crate) fn is_intact(&self) -> bool {
        self.slots
            .iter()
            .all(|entry| slot(entry.address).load(Relaxed) == entry.ours)
    }

    fn write(&self, value: impl Fn(&Slot) -> usize) -> Result<(), Unsupported> {
        for entry in &self.slots {
            let value = value(entry);
            // ORDERING: SeqCst pairs with the store in `keep_original`, as said there.
            entry.while_writable(|| slot(entry.address).store(value, SeqCst))?;
        }
        Ok(())
    }
}

impl Slot {
    /// Runs `write` while the page of the slot is writable, and restores its protection.
    fn while_writable(&self, write: impl FnOnce()) -> Result<(), Unsupported> {
        if self.protection & libc::PROT_WRITE != 0 {
            write();
            return Ok(());
        }
        protect(self.address, self.protection | libc::PROT_WRITE)?;
        write();
        protect(self.address, self.protection)
    }
}

fn slot(address: usize) -> &'static AtomicUsize {
    // SAFETY: the address is that of a pointer-sized, aligned GOT entry of an
    // object that is never unloaded; code only loads from it.
    unsafe { AtomicUsize::from_ptr(address as *mut usize) }
}

/// The protection of pages, from /proc/self/maps.
struct Protections {
    maps: MemoryMaps,
}

impl Protections {
    fn read() -> Result<Self, Unsupported> {
        let unreadable = |error: String| {
            Unsupported::new(
                format!("/proc/self/maps cannot be read: {error}"),
                "mount /proc, or run without the scheduler",
            )
        };
        let file = std::fs::File::open("/proc/self/maps").map_err(|error| unreadable(error.to_string()))?;
        let maps =
            MemoryMaps::from_buf_read(std::io::BufReader::new(file)).map_err(|error| unreadable(error.to_string()))?;
        Ok(Self { maps })
    }

    fn of(&self, address: usize) -> libc::c_int {
        let address = address as u64;
        let map = self
            .maps
            .iter()
            .find(|map| map.address.0 <= address && address < map.address.1);
        let permissions = map.map_or(MMPermissions::READ, |map| map.perms);
        let flag = |permission, protection| {
            if permissions.contains(permission) {
                protection
            } else {
                0
            }
        };
        flag(MMPermissions::READ, libc::PROT_READ)
            | flag(MMPermissions::WRITE, libc::PROT_WRITE)
            | flag(MMPermissions::EXECUTE, libc::PROT_EXEC)
    }
}

fn protect(address: usize, protection: libc::c_int) -> Result<(), Unsupported> {
    // SAFETY: sysconf has no preconditions.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as usize;
    let start = address & !(page - 1);
    // SAFETY: the page holds part of a GOT; its protection changes only by
    // PROT_WRITE, and nothing in it moves.
    if unsafe { libc::mprotect(start as *mut _, page, protection) } == 0 {
        return Ok(());
    }
    Err(Unsupported::new(
        format!(
            "the page of a relocation slot cannot be made writable: {}",
            std::io::Error::last_os_error()
        ),
        "a security policy of this system forbids it; run without the scheduler",
    ))
}
