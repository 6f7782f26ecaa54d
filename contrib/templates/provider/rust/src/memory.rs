//! What `std` would bring, without the WASI that it imports: an allocator, the end of a panic, room for the host's texts.

use alloc::alloc::{alloc, realloc, Layout};
use core::arch::wasm32::unreachable;

#[global_allocator]
static ALLOCATOR: dlmalloc::GlobalDlmalloc = dlmalloc::GlobalDlmalloc;

// What the compiler makes of a comparison or a copy is called memcmp or memcpy, and is in the target's C library.
#[link(name = "c")]
unsafe extern "C" {}

/// The call ends with a trap, and its receipt says so.
#[panic_handler]
fn panicked(_: &core::panic::PanicInfo) -> ! {
    unreachable()
}

/// Where the host puts what it hands over.
#[unsafe(no_mangle)]
unsafe extern "C" fn cabi_realloc(old: *mut u8, old_length: usize, align: usize, length: usize) -> *mut u8 {
    if length == 0 {
        return align as *mut u8;
    }
    let made = unsafe {
        if old_length == 0 {
            alloc(Layout::from_size_align_unchecked(length, align))
        } else {
            realloc(old, Layout::from_size_align_unchecked(old_length, align), length)
        }
    };
    if made.is_null() {
        unreachable()
    }
    made
}
