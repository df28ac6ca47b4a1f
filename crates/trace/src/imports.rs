//! The tree of imports, with the duration of each: its own, and including the imports it caused.
//!
//! The body of a module is recorded as well, under the same name. Within the import it is a part
//! of the import; where it runs later (lazily, or again) it is an import by itself.
//! Invariant: an import's own time and those of its imports add up to its total.

use crate::Nanos;
use crate::reader::Trace;
use crate::record::{Kind, Record};
use serde::Serialize;

/// One import; its parent, if any, is earlier in the list.
#[derive(Debug, Clone, Serialize, PartialEq, Eq)]
pub struct Import {
    /// Name of the module.
    pub name: String,
    /// Number of the import that was under way.
    pub parent: Option<usize>,
    /// Number of the thread.
    pub thread: usize,
    /// When it began.
    pub begin_ns: Nanos,
    /// Including the imports that it caused.
    pub total_ns: Nanos,
    /// Its own time.
    pub self_ns: Nanos,
    /// For how much of the total its thread had a processor; none for an import that never ended.
    pub processor_ns: Option<Nanos>,
}

/// All imports, in order of their beginnings within each thread. An import that never ended lasts
/// to the thread's last record, or to the last record before a gap.
#[must_use]
pub fn imports(trace: &Trace) -> Vec<Import> {
    let mut result = Vec::new();
    for (number, thread) in trace.threads.iter().enumerate() {
        for records in [&thread.start, &thread.records] {
            of_records(trace, number, records, &mut result);
        }
    }
    result
}

fn of_records(trace: &Trace, number: usize, records: &[Record], result: &mut Vec<Import>) {
    let mut open: Vec<Open> = Vec::new();
    for record in records {
        match record.kind {
            Kind::ImportBegin => {
                let name = trace.locations.get(&(record.payload as u32));
                let name = name.map_or("?", |location| location.file.as_str());
                match open.last_mut() {
                    Some(last) if result[last.index].name == name => last.bodies += 1,
                    last => {
                        let parent = last.map(|last| last.index);
                        result.push(begun(name, parent, number, record.time));
                        open.push(Open {
                            index: result.len() - 1,
                            bodies: 0,
                            processor_us: (record.payload >> 32) as u32,
                        });
                    }
                }
            }
            Kind::ImportEnd => match open.last_mut() {
                Some(last) if last.bodies > 0 => last.bodies -= 1,
                _ => {
                    let Some(last) = open.pop() else { continue };
                    let spent_us = (record.payload as u32).wrapping_sub(last.processor_us);
                    result[last.index].processor_ns = Some(Nanos::from(spent_us) * 1000);
                    close(last.index, record.time, result);
                }
            },
            _ => {}
        }
    }
    let end = records.last().map_or(0, |record| record.time);
    while let Some(last) = open.pop() {
        close(last.index, end, result);
    }
}

/// An import under way.
struct Open {
    /// Among the imports.
    index: usize,
    /// Bodies of the same name under way.
    bodies: u32,
    /// Processor time at its begin, without the upper bits.
    processor_us: u32,
}

fn begun(name: &str, parent: Option<usize>, thread: usize, begin_ns: Nanos) -> Import {
    Import {
        name: name.into(),
        parent,
        thread,
        begin_ns,
        total_ns: 0,
        self_ns: 0,
        processor_ns: None,
    }
}

fn close(index: usize, time: Nanos, result: &mut [Import]) {
    let total = time.saturating_sub(result[index].begin_ns);
    result[index].total_ns = total;
    // So far `self_ns` is the time of the imports that it caused.
    result[index].self_ns = total.saturating_sub(result[index].self_ns);
    if let Some(parent) = result[index].parent {
        result[parent].self_ns += total;
    }
}
