//! What encoder and decoder agree on; `docs/formats/recording.md` is the specification.

/// The first bytes of a recording.
pub(super) const MAGIC: &[u8; 8] = b"KVANTPRF";
/// The version that is written, and the newest that is read.
pub(super) const VERSION: u32 = 1;
/// Magic, version and checksum.
pub(super) const HEADER_BYTES: usize = 16;
/// What precedes a section's content.
pub(super) const SECTION_HEADER_BYTES: usize = 14;
/// Content as it is.
pub(super) const METHOD_STORED: u8 = 0;
/// Deflated content.
pub(super) const METHOD_DEFLATED: u8 = 1;

/// The longest content of a section, and of all together.
pub(super) const SECTION_BYTES_MAX: u64 = 256 << 20;
pub(super) const CONTENT_BYTES_MAX: u64 = 512 << 20;
/// Samples, and each of frames, stacks and functions.
pub(super) const LARGE_COUNT_MAX: u64 = 4 << 20;
/// Each of texts, threads, spans and modules.
pub(super) const SMALL_COUNT_MAX: u64 = 1 << 20;
/// What the names of all frames take together, each counted as often as it is used.
pub(super) const SYMBOL_BYTES_MAX: usize = 128 << 20;
/// Longest build id.
pub(super) const BUILD_ID_BYTES_MAX: u64 = 64;

/// Flag of a frame: the kernel's.
pub(super) const FLAG_KERNEL: u8 = 1;
/// Flag of a frame: a return address.
pub(super) const FLAG_RETURN: u8 = 2;

/// The sections, in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Section {
    Facts = 1,
    Modules,
    Threads,
    Names,
    Frames,
    Stacks,
    Samples,
    Spans,
    Symbols,
}

impl Section {
    pub(super) const ALL: [Section; 9] = [
        Section::Facts,
        Section::Modules,
        Section::Threads,
        Section::Names,
        Section::Frames,
        Section::Stacks,
        Section::Samples,
        Section::Spans,
        Section::Symbols,
    ];

    /// What it holds, for messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Section::Facts => "facts",
            Section::Modules => "modules",
            Section::Threads => "threads",
            Section::Names => "names",
            Section::Frames => "frames",
            Section::Stacks => "stacks",
            Section::Samples => "samples",
            Section::Spans => "spans",
            Section::Symbols => "symbols",
        }
    }
}

/// A signed difference as an unsigned number, small where its absolute value is.
pub(super) fn zigzag(difference: i64) -> u64 {
    (difference << 1 ^ difference >> 63) as u64
}

/// The difference that [`zigzag`] made a number of.
pub(super) fn unzigzag(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}
