//! Reads a manifest: edit by edit, and into a state at open.

use super::{
    FILE_HEADER_BYTES, FORMAT_VERSION, MAGIC, ManifestState, RECORD_HEADER_BYTES, RECORD_MARKER,
    record_crc,
};
use crate::format::{FileKind, FileNum, file_path, u32_at, u64_at};
use crate::version::{VersionEdit, list_files};
use kvant_base::checksum::crc32c_masked;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::Fs;
use std::path::Path;

/// Reads the edits of a manifest that is in memory.
pub(crate) struct ManifestReader<'a> {
    path: &'a Path,
    num: FileNum,
    contents: &'a [u8],
    offset: usize,
    discarded_bytes: u64,
}

impl<'a> ManifestReader<'a> {
    /// Checks the header of manifest `num`, read from `path`.
    pub(crate) fn new(
        path: &'a Path,
        num: FileNum,
        contents: &'a [u8],
    ) -> Result<ManifestReader<'a>> {
        check_file_header(path, num, contents)?;
        Ok(ManifestReader { path, num, contents, offset: FILE_HEADER_BYTES, discarded_bytes: 0 })
    }

    /// The next edit and the offset of its record; `None` at the end of the log.
    pub(crate) fn next(&mut self) -> Result<Option<(u64, VersionEdit)>> {
        let offset = self.offset;
        if offset == self.contents.len() && offset > FILE_HEADER_BYTES {
            return Ok(None);
        }
        let payload = match self.record_at(offset) {
            Ok(payload) => payload,
            Err(problem) => return self.end_at_bad_record(problem).map(|()| None),
        };
        let edit =
            VersionEdit::decode(payload).map_err(|problem| self.corruption(offset, problem))?;
        self.offset = offset + RECORD_HEADER_BYTES + payload.len();
        Ok(Some((offset as u64, edit)))
    }

    /// Bytes after the last valid record, once [`ManifestReader::next`] has returned `None`.
    pub(crate) fn discarded_bytes(&self) -> u64 {
        self.discarded_bytes
    }

    /// A bad record is the end of the log if it may be torn, and corruption otherwise.
    fn end_at_bad_record(&mut self, problem: &str) -> Result<()> {
        let offset = self.offset;
        if offset == FILE_HEADER_BYTES {
            return Err(self.corruption(offset, format!("the snapshot record is bad: {problem}")));
        }
        if let Some(later) =
            (offset + 1..self.contents.len()).find(|&later| self.header_at(later).is_ok())
        {
            let message =
                format!("a record is bad ({problem}) although another follows at byte {later}");
            return Err(self.corruption(offset, message));
        }
        self.discarded_bytes = (self.contents.len() - offset) as u64;
        self.offset = self.contents.len();
        Ok(())
    }

    /// The payload of the record at `offset`, or why it is bad.
    fn record_at(&self, offset: usize) -> std::result::Result<&'a [u8], &'static str> {
        let header = self.header_at(offset)?;
        let payload_bytes = u32_at(header, 4) as usize;
        let rest = &self.contents[offset + RECORD_HEADER_BYTES..];
        let payload = rest.get(..payload_bytes).ok_or("its payload is cut short")?;
        if payload.is_empty() || crc32c_masked(&[payload]) != u32_at(header, 8) {
            return Err("the checksum of its payload differs");
        }
        Ok(payload)
    }

    fn header_at(
        &self,
        offset: usize,
    ) -> std::result::Result<&'a [u8; RECORD_HEADER_BYTES], &'static str> {
        let header = self.contents[offset..].first_chunk().ok_or("its header is cut short")?;
        if !header.starts_with(&RECORD_MARKER) {
            return Err("it does not start with the marker");
        }
        if record_crc(self.num, offset as u64, header) != u32_at(header, 12) {
            return Err("the checksum of its header differs");
        }
        Ok(header)
    }

    fn corruption(&self, offset: usize, message: impl Into<String>) -> Error {
        Error::corruption(self.path, offset as u64, message)
    }
}

fn check_file_header(path: &Path, num: FileNum, contents: &[u8]) -> Result<()> {
    let bad = |offset, message: String| Err(Error::corruption(path, offset, message));
    let Some(header) = contents.first_chunk::<FILE_HEADER_BYTES>() else {
        let bytes = contents.len();
        return bad(0, format!("a manifest of {bytes} bytes is shorter than its header"));
    };
    if !header.starts_with(&MAGIC) {
        return bad(0, "not a manifest: the magic number differs".to_string());
    }
    if crc32c_masked(&[&header[..20]]) != u32_at(header, 20) {
        return bad(20, "the checksum of the manifest's header differs".to_string());
    }
    let version = u32_at(header, 8);
    if version > FORMAT_VERSION {
        let message = format!(
            "manifest format {version} is newer than {FORMAT_VERSION}, the newest known here"
        );
        return Err(Error::new(ErrorKind::Unsupported, message).with_file(path).with_offset(8));
    }
    if version == 0 {
        return bad(8, "there is no manifest format 0".to_string());
    }
    let stored_num = u64_at(header, 12);
    if stored_num != num.0 {
        return bad(12, format!("the header names manifest {stored_num}, the file name {}", num.0));
    }
    Ok(())
}

/// The contents of the current manifest of a directory.
#[derive(Clone, Debug)]
pub(crate) struct RecoveredManifest {
    pub(crate) state: ManifestState,
    pub(crate) num: FileNum,
    pub(crate) end_bytes: u64,
    /// Bytes of a torn last record.
    pub(crate) discarded_bytes: u64,
}

/// Reads the current manifest of `dir`; `None` if the directory contains no database.
///
/// The next file number of the result is above every number in the directory. The caller checks
/// that live tables and the oldest log exist: see "Recovery" in `docs/formats/manifest.md`.
pub(crate) fn recover(fs: &dyn Fs, dir: &Path) -> Result<Option<RecoveredManifest>> {
    let files = list_files(fs, dir)?;
    let manifests = files.iter().filter(|(kind, ..)| *kind == FileKind::Manifest);
    let Some(num) = manifests.map(|&(_, num, _)| num).max() else {
        let mut data =
            files.iter().filter(|(kind, ..)| matches!(kind, FileKind::Table | FileKind::Wal));
        let Some(&(kind, num, _)) = data.next() else {
            return Ok(None);
        };
        let message = "there is no manifest in the directory of this file: see `kvant db repair`";
        return Err(
            Error::new(ErrorKind::Corruption, message).with_file(&file_path(dir, kind, num))
        );
    };

    let path = file_path(dir, FileKind::Manifest, num);
    let contents = fs.read(&path).map_err(|error| Error::io("read", &path, error))?;
    let mut reader = ManifestReader::new(&path, num, &contents)?;
    let corrupt = |offset, problem: String| Error::corruption(&path, offset, problem);
    let Some((offset, snapshot)) = reader.next()? else {
        return Err(corrupt(FILE_HEADER_BYTES as u64, "a manifest has no snapshot record".into()));
    };
    let mut state = ManifestState::first(&snapshot).map_err(|problem| corrupt(offset, problem))?;
    while let Some((offset, edit)) = reader.next()? {
        state.apply(&edit).map_err(|problem| corrupt(offset, problem))?;
    }
    let discarded_bytes = reader.discarded_bytes();
    let highest = files.iter().map(|(_, num, _)| num.0).max().unwrap_or(0);
    state.next_file_num = FileNum(state.next_file_num.0.max(highest.saturating_add(1)));
    Ok(Some(RecoveredManifest {
        state,
        num,
        end_bytes: contents.len() as u64 - discarded_bytes,
        discarded_bytes,
    }))
}
