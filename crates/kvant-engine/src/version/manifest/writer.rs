//! Creates manifests and appends to them.

use super::{RECORD_HEADER_BYTES, encode_file_header, encode_record_header};
use crate::format::{FileKind, FileNum, file_path};
use crate::version::{Listed, VersionEdit, list_files};
use kvant_base::checksum::crc32c_masked;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::{File, Fs};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Smallest manifest worth replacing.
const OVERGROWN_BYTES_MIN: u64 = 1 << 20;
/// A manifest is replaced when it is this many times as long as its snapshot.
const OVERGROWN_RATIO: u64 = 8;

pub(crate) struct ManifestWriter {
    file: Arc<dyn File>,
    path: PathBuf,
    num: FileNum,
    /// End of the last durable record.
    end_bytes: u64,
    /// End of the first record, the snapshot; of a resumed manifest, its end at that time.
    snapshot_end_bytes: u64,
    /// The error after which nothing can be appended.
    fenced: Option<Error>,
    /// The contents or the name may be in memory only, because an earlier process failed to sync
    /// them.
    is_doubtful: bool,
    buffer: Vec<u8>,
}

impl ManifestWriter {
    /// Creates manifest `num` of `dir` with the first record `snapshot` and makes it current.
    ///
    /// # Errors
    /// [`ErrorKind::OutcomeUnknown`]: the new manifest may or may not be current after a restart,
    /// so the old one must not be appended to either. Any other kind: nothing has changed, except
    /// that a temporary file may exist, which the next open removes.
    pub(crate) fn create(
        fs: &dyn Fs,
        dir: &Path,
        num: FileNum,
        snapshot: &VersionEdit,
    ) -> Result<ManifestWriter> {
        let temporary = file_path(dir, FileKind::Temporary, num);
        let path = file_path(dir, FileKind::Manifest, num);
        let mut contents = encode_file_header(num).to_vec();
        append_record(&mut contents, num, 0, snapshot)?;

        let file = fs.create(&temporary).map_err(|error| Error::io("create", &temporary, error))?;
        file.write_all_at(&contents, 0).map_err(|error| Error::io("write", &temporary, error))?;
        let unknown = |action, path: &Path, error| {
            Error::io(action, path, error).with_kind(ErrorKind::OutcomeUnknown)
        };
        // After a failed fsync the old manifest is still current, but the disk is not to be
        // trusted.
        file.sync_data().map_err(|error| unknown("fsync", &temporary, error))?;
        fs.rename(&temporary, &path)
            .map_err(|error| unknown("rename the new manifest to", &path, error))?;
        fs.sync_dir(dir).map_err(|error| unknown("fsync", dir, error))?;
        Ok(ManifestWriter::at_end(file, path, num, contents.len() as u64))
    }

    /// Continues manifest `num` of `dir` after its valid records, which end at `end_bytes`:
    /// truncates a torn record and makes the valid ones durable, even if an earlier fsync failed.
    /// See [`ManifestWriter::is_doubtful`].
    pub(crate) fn resume(
        fs: &dyn Fs,
        dir: &Path,
        num: FileNum,
        end_bytes: u64,
    ) -> Result<ManifestWriter> {
        let path = file_path(dir, FileKind::Manifest, num);
        let file = fs.open_writable(&path).map_err(|error| Error::io("open", &path, error))?;
        let written = file.set_len(end_bytes).and_then(|()| file.write_again(0..end_bytes));
        let has_written = match written.map_err(|error| Error::io("write", &path, error)) {
            // A file system that copies on writes may have no space for that.
            Err(error) if error.kind() == ErrorKind::NoSpace => false,
            written => written.map(|()| true)?,
        };
        file.sync_data().map_err(|error| Error::io("fsync", &path, error))?;
        // A manifest before this one is removed once the name of this one is durable.
        let is_older = |(kind, other, _): &Listed| *kind == FileKind::Manifest && *other < num;
        let has_durable_name = !list_files(fs, dir)?.iter().any(is_older);
        let is_doubtful = !(has_written && has_durable_name);
        Ok(ManifestWriter { is_doubtful, ..ManifestWriter::at_end(file, path, num, end_bytes) })
    }

    /// Whether a power loss may bring an earlier state back: no file that such a state needs may be
    /// removed, and a new manifest has to replace this one before the next edit.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.is_doubtful
    }

    fn at_end(file: Arc<dyn File>, path: PathBuf, num: FileNum, end_bytes: u64) -> ManifestWriter {
        let (snapshot_end_bytes, buffer) = (end_bytes, Vec::new());
        let (fenced, is_doubtful) = (None, false);
        ManifestWriter {
            file,
            path,
            num,
            end_bytes,
            snapshot_end_bytes,
            fenced,
            is_doubtful,
            buffer,
        }
    }

    /// Appends `edit` and makes it durable.
    ///
    /// # Errors
    /// [`ErrorKind::OutcomeUnknown`]: the edit may or may not be there after a restart, so no file
    /// that it names may be removed. [`ErrorKind::Fenced`]: an earlier append had an unknown
    /// outcome. Any other kind: the edit is not recorded, and later ones can be appended.
    pub(crate) fn append(&mut self, edit: &VersionEdit) -> Result<()> {
        if let Some(first_cause) = &self.fenced {
            return Err(first_cause.clone().with_kind(ErrorKind::Fenced));
        }
        debug_assert!(!self.is_doubtful, "it has been replaced");
        self.buffer.clear();
        append_record(&mut self.buffer, self.num, self.end_bytes, edit)?;
        if let Err(error) = self.file.write_all_at(&self.buffer, self.end_bytes) {
            let error = Error::io("append to", &self.path, error);
            return Err(self.roll_back(error));
        }
        if let Err(error) = self.file.sync_data() {
            return Err(self.fence(Error::io("fsync", &self.path, error)));
        }
        self.end_bytes += self.buffer.len() as u64;
        Ok(())
    }

    /// Removes what a failed write left, up to the whole record, which must not appear after a
    /// restart.
    fn roll_back(&mut self, error: Error) -> Error {
        match self.file.set_len(self.end_bytes).and_then(|()| self.file.sync_data()) {
            Ok(()) => error,
            Err(_) => self.fence(error),
        }
    }

    fn fence(&mut self, error: Error) -> Error {
        self.fenced = Some(error.clone());
        error.with_kind(ErrorKind::OutcomeUnknown)
    }

    pub(crate) fn bytes(&self) -> u64 {
        self.end_bytes
    }

    /// Whether the manifest should be replaced by one with a new snapshot.
    pub(crate) fn is_overgrown(&self) -> bool {
        self.end_bytes > OVERGROWN_BYTES_MIN.max(OVERGROWN_RATIO * self.snapshot_end_bytes)
    }
}

/// Appends the record of `edit` to `out`, which starts at `out_offset_bytes` of the file.
pub(super) fn append_record(
    out: &mut Vec<u8>,
    num: FileNum,
    out_offset_bytes: u64,
    edit: &VersionEdit,
) -> Result<()> {
    let start = out.len();
    out.extend_from_slice(&[0; RECORD_HEADER_BYTES]);
    edit.encode_to(out);
    let payload = &out[start + RECORD_HEADER_BYTES..];
    let payload_bytes = u32::try_from(payload.len()).map_err(|_| {
        Error::invalid(format!("an edit of {} bytes does not fit a manifest record", payload.len()))
    })?;
    debug_assert!(payload_bytes > 0, "an edit without fields says nothing");
    let header = encode_record_header(
        num,
        out_offset_bytes + start as u64,
        payload_bytes,
        crc32c_masked(&[payload]),
    );
    out[start..start + RECORD_HEADER_BYTES].copy_from_slice(&header);
    Ok(())
}

/// Removes the manifests of `dir` with numbers below `current` and returns their count. Until then
/// they are ignored.
pub(crate) fn remove_older(fs: &dyn Fs, dir: &Path, current: FileNum) -> Result<usize> {
    let mut removed_count = 0;
    for (kind, num, entry) in list_files(fs, dir)? {
        if kind == FileKind::Manifest && num < current {
            let path = dir.join(&entry.name);
            fs.remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
            removed_count += 1;
        }
    }
    Ok(removed_count)
}
