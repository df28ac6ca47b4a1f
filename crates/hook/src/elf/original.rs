//! The function that a hook calls on: libc's, or the one that another library had put
//! into the slot before.
//!
//! Must never: cost a hook more than one load. Invariant: the word holds the address of a
//! function with the signature `F` at any time, first libc's and then the slot's.

use std::mem::transmute_copy;
use std::sync::atomic::{AtomicPtr, Ordering::Relaxed};

/// The original of one hooked function; `F` is the type of a pointer to it. The address
/// comes first, so that assembly may load it.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct Original<F> {
    address: AtomicPtr<()>,
    /// libc's function, as this library is linked to it.
    libc: F,
}

impl<F: Copy> Original<F> {
    /// The original of a function before its slot has been read.
    pub(crate) const fn new(libc: F) -> Self {
        Self {
            address: AtomicPtr::new(address_of(libc)),
            libc,
        }
    }

    /// The function to call.
    #[inline(always)]
    pub(crate) fn get(&self) -> F {
        let address = self.address.load(Relaxed);
        // SAFETY: by the invariant it is the address of a function of this type, and
        // `address_of` has compared the sizes.
        unsafe { transmute_copy(&address) }
    }

    /// libc's own function.
    pub(crate) fn libc(&self) -> usize {
        address_of(self.libc) as usize
    }

    /// The word in which the address is kept; what is stored there has to be a function
    /// of type `F`.
    pub(crate) const fn word(&'static self) -> &'static AtomicPtr<()> {
        &self.address
    }
}

/// The address of a function, of which `F` is a pointer.
pub(crate) const fn address_of<F: Copy>(function: F) -> *mut () {
    const { assert!(size_of::<F>() == size_of::<*mut ()>()) };
    // SAFETY: of one size by the assertion; any bits are a valid raw pointer.
    unsafe { transmute_copy(&function) }
}
