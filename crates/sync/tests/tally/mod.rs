//! A store of a channel for the tests: it only counts what is kept elsewhere.

use unsnarl_sync::Store;

pub(crate) struct Tally(pub(crate) usize);

impl Store for Tally {
    type Item = ();
    fn len(&self) -> usize {
        self.0
    }
    fn push(&mut self, (): ()) {
        self.0 += 1;
    }
    fn pop(&mut self) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }
    fn is_here(&self) -> bool {
        false
    }
}
