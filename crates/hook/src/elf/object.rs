//! The loaded ELF object that contains the interpreter, and its dynamic tables.
//!
//! Must never: read the tables from the file, which an upgrade may have replaced since it was
//! loaded.
//! Invariant: all slices point into memory that the loader mapped for an object
//! that is never unloaded.

use super::tables::{Malformed, Tables, slot_offsets};
use object::elf::{Dyn64, Rela64, Sym64};
use object::endian::NativeEndian;
use std::ffi::c_void;

/// A loaded object.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct LoadedObject {
    base: usize,
    /// Address ranges of its segments.
    segments: Vec<std::ops::Range<usize>>,
    dynamic: Option<usize>,
}

impl LoadedObject {
    /// The object that contains `address`.
    pub(crate) fn containing(address: usize) -> Option<Self> {
        let mut search = Search { address, found: None };
        // SAFETY: the callback matches the expected signature and only uses
        // `data`, which is the `Search` above, during the call.
        unsafe { libc::dl_iterate_phdr(Some(visit), (&raw mut search).cast()) };
        search.found
    }

    /// Whether `address` lies in the object. A slot that points back into its own object has not
    /// been bound yet.
    pub(crate) fn contains(&self, address: usize) -> bool {
        self.segments.iter().any(|segment| segment.contains(&address))
    }

    /// Addresses of all slots through which the object refers to each of `names`, in the order of the names.
    pub(crate) fn slots(&self, names: &[&str]) -> Result<Vec<Vec<usize>>, Malformed> {
        let dynamic = DynamicTables::of(self).ok_or(Malformed)?;
        let mut slots = vec![Vec::new(); names.len()];
        for relocations in [dynamic.jump_relocations, dynamic.relocations] {
            let tables = Tables {
                relocations,
                symbols: dynamic.symbols(relocations),
                strings: dynamic.strings,
            };
            for (index, offset) in slot_offsets(&tables, names)? {
                slots[index].push(self.base + offset as usize);
            }
        }
        for addresses in &mut slots {
            addresses.sort_unstable();
            addresses.dedup();
        }
        Ok(slots)
    }
}

struct Search {
    address: usize,
    found: Option<LoadedObject>,
}

/// Callback of dl_iterate_phdr for each object; returns 1 to end the search.
unsafe extern "C" fn visit(info: *mut libc::dl_phdr_info, _size: usize, data: *mut c_void) -> libc::c_int {
    // SAFETY: the loader passes a valid info, and `data` is our `Search`.
    let (info, search) = unsafe { (&*info, &mut *data.cast::<Search>()) };
    // SAFETY: the loader describes dlpi_phnum headers at dlpi_phdr.
    let headers = unsafe { std::slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    let base = info.dlpi_addr as usize;
    let segments: Vec<_> = headers
        .iter()
        .filter(|header| header.p_type == libc::PT_LOAD)
        .map(|header| base + header.p_vaddr as usize..base + (header.p_vaddr + header.p_memsz) as usize)
        .collect();
    if !segments.iter().any(|segment| segment.contains(&search.address)) {
        return 0;
    }
    let dynamic = headers.iter().find(|header| header.p_type == libc::PT_DYNAMIC);
    let dynamic = dynamic.map(|header| base + header.p_vaddr as usize);
    search.found = Some(LoadedObject {
        base,
        segments,
        dynamic,
    });
    1
}

/// The tables that the dynamic section points to.
struct DynamicTables {
    relocations: &'static [Rela64<NativeEndian>],
    jump_relocations: &'static [Rela64<NativeEndian>],
    symbol_table: usize,
    strings: &'static [u8],
}

impl DynamicTables {
    fn of(object: &LoadedObject) -> Option<Self> {
        let entries = object.dynamic?;
        let value = |tag: i64| dynamic_value(entries, tag);
        let address = |tag: i64| {
            let value = value(tag)? as usize;
            // glibc relocates these pointers in place; other loaders do not.
            let address = if object.contains(value) {
                value
            } else {
                object.base + value
            };
            object.contains(address).then_some(address)
        };
        Some(Self {
            relocations: relocations(address(libc_dt::RELA), value(libc_dt::RELASZ)),
            jump_relocations: relocations(address(libc_dt::JMPREL), value(libc_dt::PLTRELSZ)),
            symbol_table: address(libc_dt::SYMTAB)?,
            // SAFETY: DT_STRTAB points to DT_STRSZ bytes, mapped permanently.
            strings: unsafe {
                std::slice::from_raw_parts(address(libc_dt::STRTAB)? as *const u8, value(libc_dt::STRSZ)? as usize)
            },
        })
    }

    /// The symbols up to the last one that `relocations` mention.
    fn symbols(&self, relocations: &[Rela64<NativeEndian>]) -> &'static [Sym64<NativeEndian>] {
        let last = relocations
            .iter()
            .map(|relocation| relocation.r_info.get(NativeEndian) >> 32)
            .max();
        let count = last.map_or(0, |last| last as usize + 1);
        // SAFETY: the loader has resolved each of these relocations through
        // this table, so it has at least that many entries.
        unsafe { std::slice::from_raw_parts(self.symbol_table as *const Sym64<NativeEndian>, count) }
    }
}

/// Tags of the dynamic section (System V gABI, figure 5-10).
mod libc_dt {
    use object::elf;
    pub(super) const PLTRELSZ: i64 = elf::DT_PLTRELSZ.0;
    pub(super) const STRTAB: i64 = elf::DT_STRTAB.0;
    pub(super) const SYMTAB: i64 = elf::DT_SYMTAB.0;
    pub(super) const RELA: i64 = elf::DT_RELA.0;
    pub(super) const RELASZ: i64 = elf::DT_RELASZ.0;
    pub(super) const STRSZ: i64 = elf::DT_STRSZ.0;
    pub(super) const JMPREL: i64 = elf::DT_JMPREL.0;
}

fn dynamic_value(entries: usize, tag: i64) -> Option<u64> {
    let mut entry = entries as *const Dyn64<NativeEndian>;
    loop {
        // SAFETY: the dynamic section is mapped and ends with DT_NULL, at which
        // the loop stops.
        let current = unsafe { &*entry };
        match current.d_tag.get(NativeEndian).0 {
            0 => return None,
            found if found == tag => return Some(current.d_val.get(NativeEndian)),
            // SAFETY: not DT_NULL, so another entry follows.
            _ => entry = unsafe { entry.add(1) },
        }
    }
}

fn relocations(address: Option<usize>, bytes: Option<u64>) -> &'static [Rela64<NativeEndian>] {
    let (Some(address), Some(bytes)) = (address, bytes) else {
        return &[];
    };
    let count = bytes as usize / size_of::<Rela64<NativeEndian>>();
    // SAFETY: the loader has applied these relocations from this address.
    unsafe { std::slice::from_raw_parts(address as *const Rela64<NativeEndian>, count) }
}
