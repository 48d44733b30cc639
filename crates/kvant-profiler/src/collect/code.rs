//! Which addresses are code: the modules of the process, with a copy of their ranges for the signal
//! handler.
//!
//! Threads: one at a time refreshes (at a session's start and end); any reads, also in a signal
//! handler. During a refresh a reader may miss a module that is being loaded or unloaded; the
//! executable's own range never changes.

use crate::recording::Module;
use std::ffi::{CStr, c_int, c_void};
use std::slice;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Code beyond this many ranges is not recognised; a process has about five.
const RANGES_MAX: usize = 64;

/// The executable's own range comes first.
static RANGES: [Range; RANGES_MAX] = [const { Range::new() }; RANGES_MAX];
static RANGE_COUNT: AtomicUsize = AtomicUsize::new(0);

struct Range {
    start: AtomicUsize,
    end: AtomicUsize,
}

impl Range {
    const fn new() -> Range {
        Range { start: AtomicUsize::new(0), end: AtomicUsize::new(0) }
    }

    fn contains(&self, address: usize) -> bool {
        (self.start.load(Ordering::Relaxed)..self.end.load(Ordering::Relaxed)).contains(&address)
    }
}

/// Whether `address` is code of any module.
#[inline]
pub(super) fn is_code(address: usize) -> bool {
    let count = RANGE_COUNT.load(Ordering::Acquire);
    RANGES[..count].iter().any(|range| range.contains(address))
}

/// Whether `address` is code of the executable: Rust, which has frame pointers.
#[inline]
pub(super) fn is_own_code(address: usize) -> bool {
    RANGE_COUNT.load(Ordering::Acquire) > 0 && RANGES[0].contains(address)
}

/// Updates the ranges; returns the modules, the executable first.
pub(super) fn refresh() -> Vec<Module> {
    let mut modules: Vec<Module> = Vec::new();
    // SAFETY: the loader calls `add_object` only during this call, with the pointer to `modules`,
    // which has no other user meanwhile.
    unsafe { libc::dl_iterate_phdr(Some(add_object), (&raw mut modules).cast()) };
    let ranges = modules.iter().take(RANGES_MAX).zip(&RANGES);
    for (module, range) in ranges {
        range.start.store(module.start as usize, Ordering::Relaxed);
        range.end.store(module.end as usize, Ordering::Relaxed);
    }
    RANGE_COUNT.store(modules.len().min(RANGES_MAX), Ordering::Release);
    modules
}

/// Called by the loader with each loaded object.
unsafe extern "C" fn add_object(
    info: *mut libc::dl_phdr_info,
    _size: usize,
    modules: *mut c_void,
) -> c_int {
    // SAFETY: `refresh` passes its vector, and the loader a description that is valid during the
    // call.
    let (info, modules) = unsafe { (&*info, &mut *modules.cast::<Vec<Module>>()) };
    // SAFETY: the description contains an array of headers and their count.
    let headers = unsafe { slice::from_raw_parts(info.dlpi_phdr, usize::from(info.dlpi_phnum)) };
    // SAFETY: the name is a C string.
    let name = unsafe { CStr::from_ptr(info.dlpi_name) };
    let mut notes = headers.iter().filter(|header| header.p_type == libc::PT_NOTE);
    let build_id = notes.find_map(|header| {
        let start = (info.dlpi_addr + header.p_vaddr) as *const u8;
        // SAFETY: notes lie in a loaded segment.
        let note = unsafe { slice::from_raw_parts(start, header.p_memsz as usize) };
        build_id_of(note)
    });
    let path = path_of(&String::from_utf8_lossy(name.to_bytes()), modules.is_empty());
    let executable = |header: &&libc::Elf64_Phdr| {
        header.p_type == libc::PT_LOAD && header.p_flags & libc::PF_X != 0
    };
    for header in headers.iter().filter(executable) {
        let start = info.dlpi_addr + header.p_vaddr;
        modules.push(Module {
            path: path.clone(),
            start,
            end: start + header.p_memsz,
            file_offset_bytes: header.p_offset,
            build_id: build_id.clone().unwrap_or_default(),
        });
    }
    0
}

/// The path of a module. C libraries name the executable differently, glibc not at all; the name of
/// the kernel's library is no file.
fn path_of(name: &str, is_first: bool) -> String {
    if is_first {
        let link = rustix::fs::readlink("/proc/self/exe", Vec::new());
        return link.map_or_else(
            |_no_proc| "[executable]".to_owned(),
            |path| path.to_string_lossy().into_owned(),
        );
    }
    if name.is_empty() || name.starts_with("linux-vdso") {
        return "[vdso]".to_owned();
    }
    name.to_owned()
}

/// The build id among ELF notes. Each note has the lengths of its name and contents, a type, the
/// name and the contents, padded to four bytes.
fn build_id_of(mut notes: &[u8]) -> Option<Vec<u8>> {
    const HEADER_BYTES: usize = 12;
    const TYPE_BUILD_ID: u32 = 3;

    while notes.len() >= HEADER_BYTES {
        let number =
            |at: usize| u32::from_ne_bytes(notes[at..at + 4].try_into().expect("four bytes"));
        let name_end = HEADER_BYTES + number(0) as usize;
        let contents_start = name_end.next_multiple_of(4);
        let contents_end = contents_start + number(4) as usize;
        let name = notes.get(HEADER_BYTES..name_end)?;
        let contents = notes.get(contents_start..contents_end)?;
        if number(8) == TYPE_BUILD_ID && name == b"GNU\0" {
            return Some(contents.to_vec());
        }
        notes = notes.get(contents_end.next_multiple_of(4)..)?;
    }
    None
}

#[cfg(test)]
mod tests;
