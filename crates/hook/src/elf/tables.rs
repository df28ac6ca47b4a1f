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

/// Offsets from the load address of every slot that refers to one of `names`, each with the index of its name.
///
/// One pass serves all names, since a table has tens of thousands of relocations and few of them name a function.
///
/// # Errors
/// [`Malformed`] if a relocation names a symbol, or a symbol a string, that is
/// outside its table.
pub fn slot_offsets(tables: &Tables<'_>, names: &[&str]) -> Result<Vec<(usize, u64)>, Malformed> {
    let mut offsets = Vec::new();
    for relocation in tables.relocations {
        let info = relocation.r_info.get(NativeEndian);
        if !matches!((info & 0xffff_ffff) as u32, JUMP_SLOT | GLOB_DAT) {
            continue;
        }
        let found = symbol_name(tables, (info >> 32) as usize)?;
        if let Some(index) = names.iter().position(|name| name.as_bytes() == found) {
            offsets.push((index, relocation.r_offset.get(NativeEndian)));
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

#[cfg(test)]
mod tests {
    use super::*;
    use object::endian::{I64, U16, U32, U64};

    const STRINGS: &[u8] = b"\0sem_post\0sem_wait\0";

    fn symbol(name: u32) -> Sym64<NativeEndian> {
        Sym64 {
            st_name: U32::new(NativeEndian, name),
            st_info: elf::SymbolInfo(0),
            st_other: elf::SymbolOther(0),
            st_shndx: U16::new(NativeEndian, elf::SymbolSection(0)),
            st_value: U64::new(NativeEndian, 0),
            st_size: U64::new(NativeEndian, 0),
        }
    }

    fn relocation(offset: u64, symbol: u64, kind: u32) -> Rela64<NativeEndian> {
        Rela64 {
            r_offset: U64::new(NativeEndian, offset),
            r_info: U64::new(NativeEndian, symbol << 32 | u64::from(kind)),
            r_addend: I64::new(NativeEndian, 0),
        }
    }

    #[test]
    fn each_slot_has_the_index_of_its_name() {
        let symbols = [symbol(0), symbol(1), symbol(10)];
        let relocations = [
            relocation(8, 1, GLOB_DAT),
            relocation(16, 2, JUMP_SLOT),
            relocation(24, 0, JUMP_SLOT), // no name
            relocation(32, 1, 0),         // another kind, which may refer to nothing
            relocation(40, 1, JUMP_SLOT),
        ];
        let tables = Tables {
            relocations: &relocations,
            symbols: &symbols,
            strings: STRINGS,
        };
        let found = slot_offsets(&tables, &["sem_wait", "sem_post", "sem"]);
        assert_eq!(found, Ok(vec![(1, 8), (0, 16), (1, 40)]));
    }

    #[test]
    fn a_symbol_or_a_string_outside_is_malformed() {
        let outside = [symbol(STRINGS.len() as u32 + 1)];
        for (relocation, symbols) in [
            (relocation(8, 1, GLOB_DAT), &outside[..0]),
            (relocation(8, 0, GLOB_DAT), &outside),
        ] {
            let tables = Tables {
                relocations: &[relocation],
                symbols,
                strings: STRINGS,
            };
            assert_eq!(slot_offsets(&tables, &["sem_post"]), Err(Malformed));
        }
    }
}
