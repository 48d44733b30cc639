//! The parts of an executable file that locate its code: the build id, and the mapping from file
//! offsets to addresses.
//!
//! Only the beginning of a file is read: linkers place the headers and notes there.

use kvant_env::Fs;
use kvant_env::posix::PosixFs;
use object::Endianness;
use object::elf::{FileHeader64, NT_GNU_BUILD_ID, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use std::io;
use std::path::Path;

/// Headers and notes lie within this many bytes.
const HEAD_BYTES_MAX: u64 = 64 << 10;

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Empty if the file has none.
    pub(crate) build_id: Vec<u8>,
    segments: Vec<Segment>,
}

#[derive(Debug, PartialEq, Eq)]
struct Segment {
    file_offset_bytes: u64,
    file_bytes: u64,
    address: u64,
}

impl Layout {
    /// Reads the layout of a file.
    pub(crate) fn read(path: &Path) -> io::Result<Layout> {
        let file = PosixFs::new().open(path)?;
        let head_bytes = file.len_bytes()?.min(HEAD_BYTES_MAX);
        let mut head = vec![0; head_bytes as usize];
        file.read_exact_at(&mut head, 0)?;
        Layout::parse(&head).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("no ELF file: {error}"))
        })
    }

    pub(crate) fn parse(head: &[u8]) -> object::Result<Layout> {
        let header = FileHeader64::<Endianness>::parse(head)?;
        let endian = header.endian()?;
        let mut layout = Layout { build_id: Vec::new(), segments: Vec::new() };
        for program_header in header.program_headers(endian, head)? {
            if program_header.p_type(endian) == PT_LOAD {
                layout.segments.push(Segment {
                    file_offset_bytes: program_header.p_offset(endian),
                    file_bytes: program_header.p_filesz(endian),
                    address: program_header.p_vaddr(endian),
                });
            }
            // Notes beyond the head are ignored.
            let Ok(Some(mut notes)) = program_header.notes(endian, head) else {
                continue;
            };
            while let Ok(Some(note)) = notes.next() {
                if note.name() == b"GNU" && note.n_type(endian) == NT_GNU_BUILD_ID {
                    layout.build_id = note.desc().to_vec();
                }
            }
        }
        Ok(layout)
    }

    /// The file's own address for a file offset.
    pub(crate) fn address_of(&self, file_offset_bytes: u64) -> Option<u64> {
        self.segments.iter().find_map(|segment| {
            let distance = file_offset_bytes.checked_sub(segment.file_offset_bytes)?;
            (distance < segment.file_bytes).then(|| segment.address.checked_add(distance))?
        })
    }
}
