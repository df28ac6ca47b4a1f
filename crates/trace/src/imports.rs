//! What was imported, by whom, and how long each took: itself, and with all that it
//! imported in turn.

use crate::Nanos;
use crate::reader::{Thread, Trace};
use crate::record::Kind;
use serde::Serialize;

/// One import; its parent, if any, comes earlier in the list.
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
    /// With all that it imported.
    pub total_ns: Nanos,
    /// Itself.
    pub self_ns: Nanos,
}

/// All imports, in order of their beginnings within each thread. One that never
/// ended lasts to the thread's last record.
#[must_use]
pub fn imports(trace: &Trace) -> Vec<Import> {
    let mut result = Vec::new();
    for (number, thread) in trace.threads.iter().enumerate() {
        of_thread(trace, number, thread, &mut result);
    }
    result
}

fn of_thread(trace: &Trace, number: usize, thread: &Thread, result: &mut Vec<Import>) {
    let mut open: Vec<usize> = Vec::new();
    for record in &thread.records {
        match record.kind {
            Kind::ImportBegin => {
                let name = trace.locations.get(&(record.payload as u32));
                result.push(Import {
                    name: name.map_or_else(|| "?".into(), |location| location.file.clone()),
                    parent: open.last().copied(),
                    thread: number,
                    begin_ns: record.time,
                    total_ns: 0,
                    self_ns: 0,
                });
                open.push(result.len() - 1);
            }
            Kind::ImportEnd => close(open.pop(), record.time, result),
            _ => {}
        }
    }
    let end = thread.records.last().map_or(0, |record| record.time);
    while let Some(index) = open.pop() {
        close(Some(index), end, result);
    }
}

fn close(index: Option<usize>, time: Nanos, result: &mut [Import]) {
    let Some(index) = index else { return };
    let total = time.saturating_sub(result[index].begin_ns);
    result[index].total_ns = total;
    // Its own imports have taken their time from it already.
    result[index].self_ns = total.saturating_sub(result[index].self_ns);
    if let Some(parent) = result[index].parent {
        result[parent].self_ns += total;
    }
}
