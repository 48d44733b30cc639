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
const USUAL: Alignment = Alignment { memory_bytes: 4096, offset_bytes: 4096 };

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
    offset_bytes: u64,
}

/// A file for direct reads.
pub(super) struct DirectFile {
    file: File,
    alignment: Alignment,
}

impl DirectFile {
    pub(super) fn open(path: &Path) -> io::Result<DirectFile> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(path)?;
        let said = statx(&file, c"", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN);
        // Systems before Linux 6.1 do not say.
        let alignment = said.ok().map_or(USUAL, |said| {
            match (said.stx_dio_mem_align as usize, u64::from(said.stx_dio_offset_align)) {
                (memory_bytes, offset_bytes)
                    if memory_bytes.is_power_of_two() && offset_bytes.is_power_of_two() =>
                {
                    Alignment { memory_bytes, offset_bytes }
                }
                _ => USUAL,
            }
        });
        Ok(DirectFile { file, alignment })
    }

    /// Fills `buffer`, of at most [`READ_BYTES_MAX`], from `offset_bytes`; `UnexpectedEof` if the
    /// file is too short.
    pub(super) fn read_exact_at(&self, buffer: &mut [u8], offset_bytes: u64) -> io::Result<()> {
        if buffer.is_empty() {
            return Ok(());
        }
        let Alignment { memory_bytes, offset_bytes: sector_bytes } = self.alignment;
        let start_bytes = offset_bytes & !(sector_bytes - 1);
        let skipped_bytes = (offset_bytes - start_bytes) as usize;
        let wanted_bytes = skipped_bytes + buffer.len();
        let read_bytes = wanted_bytes.next_multiple_of(sector_bytes as usize);
        BUFFER.with_borrow_mut(|memory| {
            if memory.len() < read_bytes + memory_bytes {
                memory.resize(read_bytes + memory_bytes, 0);
            }
            let first = memory.as_ptr().align_offset(memory_bytes);
            let sectors = &mut memory[first..first + read_bytes];
            self.fill(sectors, wanted_bytes, start_bytes)?;
            buffer.copy_from_slice(&sectors[skipped_bytes..wanted_bytes]);
            Ok(())
        })
    }

    /// Reads whole sectors, until at least `wanted_bytes` are there.
    fn fill(&self, sectors: &mut [u8], wanted_bytes: usize, start_bytes: u64) -> io::Result<()> {
        let mut filled_bytes = 0;
        while filled_bytes < wanted_bytes {
            match self.file.read_at(&mut sectors[filled_bytes..], start_bytes + filled_bytes as u64)
            {
                Ok(count) => {
                    filled_bytes += count;
                    // A part of a sector is the end of the file.
                    let is_whole = (count as u64).is_multiple_of(self.alignment.offset_bytes);
                    if (count == 0 || !is_whole) && filled_bytes < wanted_bytes {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}
