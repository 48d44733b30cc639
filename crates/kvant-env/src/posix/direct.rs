//! Reads past the page cache (`O_DIRECT`).
//!
//! The device reads whole sectors into memory at whole sectors, so that reads go through a buffer
//! of the thread. Long reads, those of compactions and long ranges, do go through the page cache:
//! the system reads ahead for them, and what was just written is there.
//!
//! Threads: any.

use rustix::fs::{AtFlags, StatxFlags, statx};
use std::cell::RefCell;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

/// For file systems that do not say: sectors of more are not in use.
const USUAL: Alignment = Alignment { memory_bytes: 4096, sector_bytes: 4096 };

/// Longer reads are not direct.
pub(super) const READ_BYTES_MAX: usize = 64 << 10;

thread_local! {
    /// As long as the longest read so far.
    static BUFFER: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// What addresses of memory, and offsets and lengths in the file, are multiples of: powers of two.
#[derive(Clone, Copy)]
struct Alignment {
    memory_bytes: usize,
    sector_bytes: usize,
}

/// A file for direct reads.
pub(super) struct DirectFile {
    file: File,
    alignment: Alignment,
}

impl DirectFile {
    pub(super) fn open(path: &Path) -> io::Result<DirectFile> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
        let alignment = match statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN) {
            Ok(said) if said.stx_mask & StatxFlags::DIOALIGN.bits() != 0 => {
                if said.stx_dio_offset_align == 0 {
                    return Err(io::ErrorKind::Unsupported.into());
                }
                Alignment {
                    memory_bytes: (said.stx_dio_mem_align as usize).next_power_of_two(),
                    sector_bytes: (said.stx_dio_offset_align as usize).next_power_of_two(),
                }
            }
            // Before Linux 6.1, and for file systems that do not say.
            _ => USUAL,
        };
        Ok(DirectFile { file, alignment })
    }

    /// Fills `buffer`, of at most [`READ_BYTES_MAX`], from `offset_bytes`. False if one read gave
    /// less, as at the end of the file: how much there is, a read through the page cache tells.
    pub(super) fn try_read_exact_at(
        &self,
        buffer: &mut [u8],
        offset_bytes: u64,
    ) -> io::Result<bool> {
        let Alignment { memory_bytes, sector_bytes } = self.alignment;
        let skipped_bytes = offset_bytes as usize & (sector_bytes - 1);
        let wanted_bytes = skipped_bytes + buffer.len();
        let read_bytes = wanted_bytes.next_multiple_of(sector_bytes);
        BUFFER.with_borrow_mut(|memory| {
            if memory.len() < read_bytes + memory_bytes {
                memory.resize(read_bytes + memory_bytes, 0);
            }
            let first = memory.as_ptr().align_offset(memory_bytes);
            let sectors = &mut memory[first..first + read_bytes];
            let count = match self.file.read_at(sectors, offset_bytes - skipped_bytes as u64) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => 0,
                outcome => outcome?,
            };
            if count < wanted_bytes {
                return Ok(false);
            }
            buffer.copy_from_slice(&sectors[skipped_bytes..wanted_bytes]);
            Ok(true)
        })
    }
}
