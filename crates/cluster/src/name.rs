//! Names as users choose them, and as they stand in keys, channels and tables: percent-encoded.
//!
//! Invariant: `escape` is injective, and what it returns consists of ASCII letters, digits, `-`, `_`, `.` and `%`; so
//! no name can reach into another's keys, and none is a pattern.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::failure::{Failure, Outcome};

const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.');

/// Bytes of a name; PostgreSQL's index entries, the smallest limit of all, have room for three times as much.
const LONGEST: usize = 255;

/// Returns the name for the use in keys.
pub(crate) fn escape(name: &str) -> Outcome<String> {
    if name.is_empty() || name.len() > LONGEST {
        return Err(Failure::invalid(format!(
            "a name has 1 to {LONGEST} bytes, not {}",
            name.len()
        )));
    }
    Ok(utf8_percent_encode(name, ESCAPED).to_string())
}

/// Returns the name that was escaped.
pub(crate) fn unescape(key: &str) -> String {
    percent_decode_str(key).decode_utf8_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::{escape, unescape};

    #[test]
    fn names_come_back() {
        for name in ["nightly", "a/b", "*?[", "{x}:y", "é\n", "%2F", "."] {
            assert_eq!(unescape(&escape(name).expect("a good name")), name);
        }
        assert_eq!(escape("a/b").expect("a good name"), "a%2Fb");
    }

    #[test]
    fn nothing_and_novels_are_no_names() {
        assert!(escape("").is_err());
        assert!(escape(&"x".repeat(256)).is_err());
    }
}
