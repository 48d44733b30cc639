//! What of an executable file says where its code is: its build id, and which part of it is at
//! which address.
//!
//! Only the beginning of a file is read: linkers put the headers and the notes there.

use kvant_env::Fs;
use kvant_env::posix::PosixFs;
use object::elf::{FileHeader64, NT_GNU_BUILD_ID, PT_LOAD};
use object::read::elf::{FileHeader as _, ProgramHeader as _};
use object::{Endianness, Object as _, ObjectSymbol as _};
use std::io;
use std::path::Path;

/// Headers and notes lie within this many bytes.
const HEAD_BYTES_MAX: u64 = 64 << 10;

/// The plan by which a file is loaded.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Empty where the linker gave none.
    pub(super) build_id: Vec<u8>,
    segments: Vec<Segment>,
}

#[derive(Debug, PartialEq, Eq)]
struct Segment {
    file_offset_bytes: u64,
    file_bytes: u64,
    address: u64,
}

impl Layout {
    /// The layout of a file.
    ///
    /// # Errors
    /// It cannot be read, or is no 64-bit ELF file.
    pub(super) fn read(path: &Path) -> io::Result<Layout> {
        let file = PosixFs::new().open(path)?;
        let head_bytes = file.len_bytes()?.min(HEAD_BYTES_MAX);
        let mut head = vec![0; head_bytes as usize];
        file.read_exact_at(&mut head, 0)?;
        Layout::parse(&head).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("no ELF file: {error}"))
        })
    }

    /// The layout that the beginning of a file tells.
    pub(super) fn parse(head: &[u8]) -> object::Result<Layout> {
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
            // Notes that do not lie within the head tell nothing.
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

    /// The address, as the file counts them, of what is at this place in the file.
    pub(super) fn address_of(&self, file_offset_bytes: u64) -> Option<u64> {
        let within = |segment: &&Segment| {
            file_offset_bytes
                .checked_sub(segment.file_offset_bytes)
                .is_some_and(|distance| distance < segment.file_bytes)
        };
        let segment = self.segments.iter().find(within)?;
        segment.address.checked_add(file_offset_bytes - segment.file_offset_bytes)
    }
}

/// The functions of the code that the kernel lends every process (`[vdso]`), by their offset in it:
/// read from the own process, as it is the same in all.
pub(super) fn vdso_functions() -> io::Result<Vec<(u64, String)>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let maps = kvant_env::host::read_text(Path::new("/proc/self/maps"))?;
    let line = maps.lines().find(|line| line.ends_with("[vdso]"));
    let (start, end) =
        line.and_then(range_of).ok_or_else(|| invalid("this process has no [vdso]"))?;
    let mut image = vec![0; (end - start) as usize];
    PosixFs::new().open(Path::new("/proc/self/mem"))?.read_exact_at(&mut image, start)?;
    let file = object::File::parse(&image[..]).map_err(|error| invalid(&error.to_string()))?;
    let symbols = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    let mut functions: Vec<(u64, String)> = symbols
        .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_owned())))
        .collect();
    functions.sort_unstable();
    // Most have two names; the first of them says where they are from.
    functions.dedup_by_key(|(address, _)| *address);
    Ok(functions)
}

/// The addresses at the beginning of a line of `/proc/PID/maps`.
pub(super) fn range_of(line: &str) -> Option<(u64, u64)> {
    let (start, end) = line.split_whitespace().next()?.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    Some((hex(start)?, hex(end)?)).filter(|(start, end)| start < end)
}
