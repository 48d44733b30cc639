//! Prints the contents of a data directory as text.

use super::open::{TOOL_MEMORY_BYTES, lock_existing, open_db, open_table_file, table_context};
use crate::cursor::InternalIterator;
use crate::format::{FileKind, FileNum, InternalKeyRef, ValueKind, file_path, split_expiry};
use crate::version::{ManifestReader, list_files};
use crate::wal;
use kvant_base::{Consumer, Error, Result};
use kvant_env::Env;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;

/// What to dump.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DumpTarget {
    /// The visible records in key order: `KEY = VALUE`, bytes escaped.
    Records,
    /// The edits of the current manifest.
    Manifest,
    /// The records and operations of one log file.
    Wal(u64),
    /// The properties and entries of one table.
    Table(u64),
}

/// Writes the target as text to `out`.
///
/// # Errors
/// `Locked` when the directory is in use; `Corruption` with file and offset of the first damage;
/// `Io`, also of `out`.
pub fn dump(env: &Env, dir: &Path, target: DumpTarget, out: &mut dyn Write) -> Result<()> {
    match target {
        DumpTarget::Records => dump_records(env, dir, out),
        DumpTarget::Manifest => dump_manifest(env, dir, out),
        DumpTarget::Wal(num) => dump_wal(env, dir, FileNum(num), out),
        DumpTarget::Table(num) => dump_table(env, dir, FileNum(num), out),
    }
}

fn dump_records(env: &Env, dir: &Path, out: &mut dyn Write) -> Result<()> {
    let db = open_db(env, dir)?;
    let mut range = db.range(b"", None)?;
    while let Some(record) = range.next()? {
        to_output(writeln!(
            out,
            "{} = {}",
            record.key.escape_ascii(),
            record.value.escape_ascii()
        ))?;
    }
    drop(range);
    db.close()
}

fn dump_manifest(env: &Env, dir: &Path, out: &mut dyn Write) -> Result<()> {
    let _lock = lock_existing(env, dir)?;
    let files = list_files(&*env.fs, dir)?;
    let newest =
        files.iter().filter(|(kind, ..)| *kind == FileKind::Manifest).map(|(_, num, _)| *num).max();
    let num = newest.ok_or_else(|| Error::corruption(dir, 0, "there is no manifest"))?;
    let path = file_path(dir, FileKind::Manifest, num);
    let contents = env.fs.read(&path).map_err(|e| Error::io("read", &path, e))?;
    let mut reader = ManifestReader::new(&path, num, &contents)?;
    while let Some((offset, edit)) = reader.next()? {
        to_output(writeln!(out, "at byte {offset}: {edit:#?}"))?;
    }
    to_output(writeln!(out, "{} bytes of a torn edit", reader.discarded_bytes()))
}

fn dump_wal(env: &Env, dir: &Path, num: FileNum, out: &mut dyn Write) -> Result<()> {
    let _lock = lock_existing(env, dir)?;
    let wals = wal::recover(&*env.fs, dir, &[num], &BTreeMap::new(), None, &mut |_, record| {
        to_output(writeln!(
            out,
            "at byte {}: {} operations",
            record.offset_bytes, record.op_count
        ))?;
        record.replay(|seq, op| {
            let key = InternalKeyRef::new(op.key, seq, op.kind);
            to_output(write_entry(out, key, op.stored))
        })
    })?;
    wals.iter().try_for_each(|wal| {
        let (good, discarded) = (wal.end.good_bytes, wal.end.discarded_bytes);
        let reason = wal.end.reason;
        to_output(writeln!(out, "{good} good bytes, {discarded} discarded: {reason}"))
    })
}

fn dump_table(env: &Env, dir: &Path, num: FileNum, out: &mut dyn Write) -> Result<()> {
    let _lock = lock_existing(env, dir)?;
    let table = open_table_file(env, dir, num, &table_context(env, TOOL_MEMORY_BYTES / 2))?;
    to_output(writeln!(out, "{:#?}", table.properties()))?;
    let mut entries = table.iter(false, Consumer::Iterators);
    entries.seek_to_first()?;
    while entries.valid() {
        to_output(write_entry(out, entries.key(), entries.value()))?;
        entries.next()?;
    }
    Ok(())
}

fn write_entry(out: &mut dyn Write, key: InternalKeyRef<'_>, stored: &[u8]) -> io::Result<()> {
    let (seq, user_key) = (key.seq().0, key.user_key.escape_ascii());
    match key.kind() {
        Some(ValueKind::Delete) => writeln!(out, "  {user_key} @{seq} deleted"),
        Some(kind) => match split_expiry(kind, stored) {
            Some((None, value)) => writeln!(out, "  {user_key} @{seq} = {}", value.escape_ascii()),
            Some((Some(at_ms), value)) => {
                writeln!(out, "  {user_key} @{seq} until {at_ms} = {}", value.escape_ascii())
            }
            None => writeln!(out, "  {user_key} @{seq} has a malformed value"),
        },
        None => writeln!(out, "  {user_key} @{seq} has an unknown kind"),
    }
}

fn to_output(result: io::Result<()>) -> Result<()> {
    result.map_err(|source| Error::io("write to", Path::new("the output"), source))
}
