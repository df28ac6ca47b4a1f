//! Finds the relocation slots of a named symbol in the dynamic tables of a loaded object.
//!
//! Pure: slices in, offsets out. Must never: read memory outside of the slices. Invariant: a table
//! that refers outside of another one is an error, not a crash.

use object::elf::{self, Rela64, Sym64};
use object::endian::NativeEndian;

/// Relocation type of a function called through the PLT.
#[cfg(target_arch = "x86_64")]
const JUMP_SLOT: u32 = elf::R_X86_64_JUMP_SLOT.0;
/// Relocation type of an address loaded from the GOT.
#[cfg(target_arch = "x86_64")]
const GLOB_DAT: u32 = elf::R_X86_64_GLOB_DAT.0;
/// Relocation type of a function called through the PLT.
#[cfg(target_arch = "aarch64")]
const JUMP_SLOT: u32 = elf::R_AARCH64_JUMP_SLOT.0;
/// Relocation type of an address loaded from the GOT.
#[cfg(target_arch = "aarch64")]
const GLOB_DAT: u32 = elf::R_AARCH64_GLOB_DAT.0;

/// The dynamic tables of one object.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// Relocations with addend (`DT_RELA` or `DT_JMPREL`).
    pub relocations: &'a [Rela64<NativeEndian>],
    /// Dynamic symbols, at least as many as the relocations refer to.
    pub symbols: &'a [Sym64<NativeEndian>],
    /// Dynamic string table.
    pub strings: &'a [u8],
}

/// The tables contradict each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Malformed;

/// Offsets from the load address of every slot that refers to `name`.
///
/// # Errors
/// [`Malformed`] if a relocation names a symbol, or a symbol a string, that is
/// outside its table.
pub fn slot_offsets(tables: &Tables<'_>, name: &str) -> Result<Vec<u64>, Malformed> {
    let mut offsets = Vec::new();
    for relocation in tables.relocations {
        let info = relocation.r_info.get(NativeEndian);
        if !matches!((info & 0xffff_ffff) as u32, JUMP_SLOT | GLOB_DAT) {
            continue;
        }
        if symbol_name(tables, (info >> 32) as usize)? == name.as_bytes() {
            offsets.push(relocation.r_offset.get(NativeEndian));
        }
    }
    Ok(offsets)
}

fn symbol_name<'a>(tables: &Tables<'a>, index: usize) -> Result<&'a [u8], Malformed> {
    let symbol = tables.symbols.get(index).ok_or(Malformed)?;
    let start = symbol.st_name.get(NativeEndian) as usize;
    let tail = tables.strings.get(start..).ok_or(Malformed)?;
    let length = tail.iter().position(|&byte| byte == 0).ok_or(Malformed)?;
    Ok(&tail[..length])
}
