//! Reads the line of an instruction from a code object's line table.
//!
//! Invariant: any bytes give a line or none; no input makes it panic or loop.

/// The line of an instruction by a code object's `co_linetable` (Objects/locations.md of CPython, 3.11 and later);
/// `None` if it has none. `offset` is in bytes.
#[must_use]
pub fn line_at(table: &[u8], first_line: u32, offset: usize) -> Option<u32> {
    let mut line = i64::from(first_line);
    let mut until = 0;
    let mut entries = table.iter().copied().enumerate().filter(|(_, byte)| byte & 0x80 != 0);
    loop {
        let (at, head) = entries.next()?;
        let code = head >> 3 & 15;
        line += match code {
            11 => 1,
            12 => 2,
            13 | 14 => signed(table.get(at + 1..)?),
            _ => 0,
        };
        until += (usize::from(head & 7) + 1) * 2;
        if offset < until {
            return if code == 15 { None } else { u32::try_from(line).ok() };
        }
    }
}

/// A signed number in groups of six bits, of which the lowest come first.
fn signed(bytes: &[u8]) -> i64 {
    let mut value = 0_i64;
    for (group, &byte) in bytes.iter().take(8).enumerate() {
        value |= i64::from(byte & 63) << (6 * group);
        if byte & 64 == 0 {
            break;
        }
    }
    if value & 1 == 0 { value >> 1 } else { -(value >> 1) }
}

#[cfg(test)]
mod tests {
    use super::line_at;

    #[test]
    fn a_line_table_gives_the_lines_that_the_interpreter_gives() {
        // `def f(x):\n    y = x\n\n    return y + 1` as CPython 3.13 compiles it, the function on line 1.
        let table = [
            0x80, 0, 0xd8, 0x08, 0x09, 0x80, 0x41, 0xe0, 0x0b, 0x0c, 0x88, 0x71, 0x89, 0x35, 0x80, 0x4c,
        ];
        assert_eq!(line_at(&table, 1, 0), Some(1));
        assert_eq!((line_at(&table, 1, 2), line_at(&table, 1, 6)), (Some(2), Some(4)));
        assert_eq!(line_at(&[], 1, 0), None);
        assert_eq!(line_at(&[0xf8], 1, 0), None);
        assert_eq!(line_at(&[0xe8, 0x05], 9, 0), Some(7));
    }
}
