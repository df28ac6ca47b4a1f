//! The header of a segment: eight words that are checked before any other word of the segment is used.
//!
//! | word | content |
//! |---|---|
//! | 0 | magic |
//! | 1 | layout version, kind |
//! | 2 | page size, pages of the cell |
//! | 3 | the parameter: initial value, parties, items |
//! | 4 | the second parameter: bytes of a queue |
//! | 5 | the pid namespace; thread ids are valid only inside it |
//! | 6 | the process that created it |
//! | 7 | checksum of words 0 to 6 |
//!
//! The header is written once, before the segment gets a name, and never changes.
//!
//! Invariant: `Header::decode` returns for any 64 bytes and never panics.

/// Words in a header.
pub const HEADER_WORDS: usize = 8;
/// The version of the layout of shared memory. It changes with the meaning of any word.
pub const LAYOUT: u32 = 6;
const MAGIC: u64 = u64::from_le_bytes(*b"unsnarl\x01");
/// Upper bound of a segment's pages: 64 GiB of 4 KiB pages.
const MAX_PAGES: u32 = 1 << 24;

/// The kinds of primitives that a segment can hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u32)]
#[allow(missing_docs)]
pub enum Kind {
    Lock = 1,
    RLock = 2,
    Semaphore = 3,
    BoundedSemaphore = 4,
    Event = 5,
    CountdownEvent = 6,
    Barrier = 7,
    Condition = 8,
    RWLock = 9,
    Queue = 10,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 10] = [
        Self::Lock,
        Self::RLock,
        Self::Semaphore,
        Self::BoundedSemaphore,
        Self::Event,
        Self::CountdownEvent,
        Self::Barrier,
        Self::Condition,
        Self::RWLock,
        Self::Queue,
    ];

    /// The class's name in Python.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Lock => "Lock",
            Self::RLock => "RLock",
            Self::Semaphore => "Semaphore",
            Self::BoundedSemaphore => "BoundedSemaphore",
            Self::Event => "Event",
            Self::CountdownEvent => "CountdownEvent",
            Self::Barrier => "Barrier",
            Self::Condition => "Condition",
            Self::RWLock => "RWLock",
            Self::Queue => "Queue",
        }
    }

    fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u32 == number)
    }
}

/// The content of a header.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// The kind of the primitive.
    pub kind: Kind,
    /// Bytes of a page on the machine that created the segment.
    pub page_size: u32,
    /// Pages of the segment.
    pub pages: u32,
    /// Initial value, parties or items.
    pub parameter: u64,
    /// Bytes of a queue.
    pub capacity: u64,
    /// The pid namespace that thread ids belong to.
    pub pid_namespace: u64,
    /// The process that created the segment.
    pub creator: u64,
}

/// The values that a header is checked against.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Expectations {
    /// The kind that the caller wants; None for any.
    pub kind: Option<Kind>,
    /// Bytes of a page here.
    pub page_size: u32,
    /// Bytes of the file.
    pub file_size: u64,
    /// The pid namespace here.
    pub pid_namespace: u64,
}

/// Why a segment is not used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// The file is not a segment of unsnarl, or its header was overwritten.
    Damaged(&'static str),
    /// The segment has another layout version.
    Version(u32),
    /// The segment is of another kind.
    Kind(Kind),
    /// The segment belongs to another pid namespace.
    Namespace,
}

fn checksum(words: &[u64]) -> u64 {
    // FNV-1a over words: it detects damage and truncation; it is no signature.
    words.iter().fold(0xcbf2_9ce4_8422_2325, |sum, word| {
        (sum ^ word).wrapping_mul(0x0000_0100_0000_01b3).rotate_left(23)
    })
}

impl Header {
    /// Encodes the header's words.
    #[must_use]
    pub fn encode(&self) -> [u64; HEADER_WORDS] {
        let mut words = [
            MAGIC,
            u64::from(LAYOUT) << 32 | u64::from(self.kind as u32),
            u64::from(self.page_size) << 32 | u64::from(self.pages),
            self.parameter,
            self.capacity,
            self.pid_namespace,
            self.creator,
            0,
        ];
        words[7] = checksum(&words[..7]);
        words
    }

    /// Decodes a header and checks it.
    ///
    /// # Errors
    /// The first check that fails.
    pub fn decode(words: &[u64; HEADER_WORDS], expectations: &Expectations) -> Result<Self, Refusal> {
        if words[0] != MAGIC {
            return Err(Refusal::Damaged("it does not begin like a segment of unsnarl"));
        }
        let layout = (words[1] >> 32) as u32;
        if layout != LAYOUT {
            return Err(Refusal::Version(layout));
        }
        if words[7] != checksum(&words[..7]) {
            return Err(Refusal::Damaged("its checksum is wrong"));
        }
        let kind = Kind::from_number(words[1] as u32).ok_or(Refusal::Damaged("it is of no known kind"))?;
        let header = Self {
            kind,
            page_size: (words[2] >> 32) as u32,
            pages: words[2] as u32,
            parameter: words[3],
            capacity: words[4],
            pid_namespace: words[5],
            creator: words[6],
        };
        header.check(expectations)
    }

    fn check(self, expectations: &Expectations) -> Result<Self, Refusal> {
        if self.page_size != expectations.page_size || self.pages == 0 || self.pages > MAX_PAGES {
            return Err(Refusal::Damaged("it has another page size"));
        }
        if u64::from(self.pages) * u64::from(self.page_size) != expectations.file_size {
            return Err(Refusal::Damaged("the file's length differs from its header's"));
        }
        if self.pages != self.kind_pages() {
            return Err(Refusal::Damaged("its size does not fit its kind"));
        }
        if expectations.kind.is_some_and(|kind| kind != self.kind) {
            return Err(Refusal::Kind(self.kind));
        }
        if self.pid_namespace != expectations.pid_namespace {
            return Err(Refusal::Namespace);
        }
        Ok(self)
    }

    /// Pages of a segment with this header.
    #[must_use]
    pub fn kind_pages(&self) -> u32 {
        let tables = 16_384_u64.div_ceil(u64::from(self.page_size.max(1)));
        let pages = match self.kind {
            Kind::Lock | Kind::RLock | Kind::Event | Kind::CountdownEvent => 0,
            Kind::Queue => self.capacity.div_ceil(u64::from(self.page_size.max(1))),
            _ => tables,
        };
        u32::try_from(pages).unwrap_or(MAX_PAGES).saturating_add(1)
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::{Expectations, HEADER_WORDS, Header, Kind, LAYOUT, MAX_PAGES, Refusal};
    use proptest::prelude::*;

    fn header(kind: Kind, parameter: u64, capacity: u64) -> Header {
        let mut header = Header {
            kind,
            page_size: 4096,
            pages: 0,
            parameter,
            capacity,
            pid_namespace: 7,
            creator: 9,
        };
        header.pages = header.kind_pages();
        header
    }

    fn expectations(header: &Header) -> Expectations {
        Expectations {
            kind: Some(header.kind),
            page_size: header.page_size,
            file_size: u64::from(header.pages) * u64::from(header.page_size),
            pid_namespace: header.pid_namespace,
        }
    }

    proptest! {
        #[test]
        fn what_was_encoded_is_decoded(number in 0..10usize, parameter: u64, capacity in 0..1u64 << 30) {
            let header = header(Kind::ALL[number], parameter, capacity);
            prop_assert_eq!(Header::decode(&header.encode(), &expectations(&header)), Ok(header));
        }

        #[test]
        fn any_words_get_an_answer(words: [u64; HEADER_WORDS], fixed in 0u32..256, size: u64) {
            // Random words rarely get past the magic number: keep some of a good header.
            let good = header(Kind::Queue, 5, 1 << 20);
            let mut mixed = words;
            for (number, word) in good.encode().into_iter().enumerate() {
                if fixed & (1 << number) != 0 {
                    mixed[number] = word;
                }
            }
            let mut expectations = expectations(&good);
            if fixed & 1 == 0 {
                expectations.file_size = size;
            }
            let answer = Header::decode(&mixed, &expectations);
            prop_assert!(answer.is_err() || mixed == good.encode());
            if let Ok(header) = answer {
                prop_assert!(header.pages <= MAX_PAGES);
            }
        }

        #[test]
        fn any_changed_bit_is_noticed(bit in 0..HEADER_WORDS * 64) {
            let good = header(Kind::Barrier, 8, 0);
            let mut words = good.encode();
            words[bit / 64] ^= 1 << (bit % 64);
            prop_assert!(Header::decode(&words, &expectations(&good)).is_err());
        }
    }

    #[test]
    fn another_version_is_named() {
        let good = header(Kind::Lock, 0, 0);
        let mut words = good.encode();
        words[1] = u64::from(LAYOUT + 1) << 32 | 1;
        assert_eq!(
            Header::decode(&words, &expectations(&good)),
            Err(Refusal::Version(LAYOUT + 1))
        );
    }

    #[test]
    fn another_kind_is_named() {
        let good = header(Kind::Lock, 0, 0);
        let wanted = Expectations {
            kind: Some(Kind::RLock),
            ..expectations(&good)
        };
        assert_eq!(Header::decode(&good.encode(), &wanted), Err(Refusal::Kind(Kind::Lock)));
    }
}
