//! LevelDB's C interface behind safe types.
//!
//! Invariants:
//! 1. A handle is released once, by the type that owns it, and after everything made from it: an
//!    [`Iter`] borrows its [`Snapshot`], and a [`Snapshot`] keeps its [`Database`].
//! 2. Bytes that LevelDB lends (the key and value of an iterator) are borrowed from the iterator,
//!    and the borrow ends before the iterator moves.
//! 3. Bytes that LevelDB gives away (values, properties, error texts) come from `malloc` and are
//!    released once by `leveldb_free`.
//! 4. No call unwinds: LevelDB is compiled without exceptions and calls no Rust code.
//!
//! Errors are LevelDB's own texts; [`crate::status`] gives them a kind.
//!
//! Threads: LevelDB synchronizes the use of a database and of its snapshots. Iterators and batches
//! are for one thread at a time, which the borrow checker ensures.

// Only for the library that it builds and links.
use cruzbit_leveldb_sys as _;

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_uchar, c_void};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr::{self, NonNull};
use std::sync::Arc;

/// A text of LevelDB that describes an error.
pub(crate) type Text = String;

macro_rules! opaque {
    ($($name:ident),*) => {
        $(#[repr(C)]
        struct $name {
            _private: [u8; 0],
        })*
    };
}

opaque!(RawDb, RawOptions, RawCache, RawFilter, RawBatch, RawIter, RawSnapshot);
opaque!(RawReadOptions, RawWriteOptions);

// As in `leveldb/c.h`; the declarations of the crate that builds the library lack the appending of
// batches, and take results through pointers to constants.
unsafe extern "C" {
    fn leveldb_open(o: *const RawOptions, name: *const c_char, e: *mut *mut c_char) -> *mut RawDb;
    fn leveldb_close(db: *mut RawDb);
    fn leveldb_repair_db(o: *const RawOptions, name: *const c_char, e: *mut *mut c_char);
    fn leveldb_write(
        db: *mut RawDb,
        o: *const RawWriteOptions,
        batch: *mut RawBatch,
        e: *mut *mut c_char,
    );
    fn leveldb_get(
        db: *mut RawDb,
        o: *const RawReadOptions,
        key: *const c_char,
        key_len: usize,
        value_len: *mut usize,
        e: *mut *mut c_char,
    ) -> *mut c_char;
    fn leveldb_property_value(db: *mut RawDb, name: *const c_char) -> *mut c_char;
    fn leveldb_compact_range(
        db: *mut RawDb,
        start: *const c_char,
        start_len: usize,
        limit: *const c_char,
        limit_len: usize,
    );
    fn leveldb_create_snapshot(db: *mut RawDb) -> *const RawSnapshot;
    fn leveldb_release_snapshot(db: *mut RawDb, snapshot: *const RawSnapshot);

    fn leveldb_create_iterator(db: *mut RawDb, o: *const RawReadOptions) -> *mut RawIter;
    fn leveldb_iter_destroy(iter: *mut RawIter);
    fn leveldb_iter_valid(iter: *const RawIter) -> c_uchar;
    fn leveldb_iter_seek(iter: *mut RawIter, key: *const c_char, key_len: usize);
    fn leveldb_iter_next(iter: *mut RawIter);
    fn leveldb_iter_key(iter: *const RawIter, len: *mut usize) -> *const c_char;
    fn leveldb_iter_value(iter: *const RawIter, len: *mut usize) -> *const c_char;
    fn leveldb_iter_get_error(iter: *const RawIter, e: *mut *mut c_char);

    fn leveldb_writebatch_create() -> *mut RawBatch;
    fn leveldb_writebatch_destroy(batch: *mut RawBatch);
    fn leveldb_writebatch_clear(batch: *mut RawBatch);
    fn leveldb_writebatch_put(
        batch: *mut RawBatch,
        key: *const c_char,
        key_len: usize,
        value: *const c_char,
        value_len: usize,
    );
    fn leveldb_writebatch_delete(batch: *mut RawBatch, key: *const c_char, key_len: usize);
    fn leveldb_writebatch_append(to: *mut RawBatch, from: *const RawBatch);

    fn leveldb_options_create() -> *mut RawOptions;
    fn leveldb_options_destroy(o: *mut RawOptions);
    fn leveldb_options_set_create_if_missing(o: *mut RawOptions, on: c_uchar);
    fn leveldb_options_set_error_if_exists(o: *mut RawOptions, on: c_uchar);
    fn leveldb_options_set_paranoid_checks(o: *mut RawOptions, on: c_uchar);
    fn leveldb_options_set_write_buffer_size(o: *mut RawOptions, bytes: usize);
    fn leveldb_options_set_compression(o: *mut RawOptions, method: c_int);
    fn leveldb_options_set_cache(o: *mut RawOptions, cache: *mut RawCache);
    fn leveldb_options_set_filter_policy(o: *mut RawOptions, filter: *mut RawFilter);
    fn leveldb_cache_create_lru(bytes: usize) -> *mut RawCache;
    fn leveldb_cache_destroy(cache: *mut RawCache);
    fn leveldb_filterpolicy_create_bloom(bits_per_key: c_int) -> *mut RawFilter;
    fn leveldb_filterpolicy_destroy(filter: *mut RawFilter);

    fn leveldb_readoptions_create() -> *mut RawReadOptions;
    fn leveldb_readoptions_destroy(o: *mut RawReadOptions);
    fn leveldb_readoptions_set_verify_checksums(o: *mut RawReadOptions, on: c_uchar);
    fn leveldb_readoptions_set_fill_cache(o: *mut RawReadOptions, on: c_uchar);
    fn leveldb_readoptions_set_snapshot(o: *mut RawReadOptions, snapshot: *const RawSnapshot);
    fn leveldb_writeoptions_create() -> *mut RawWriteOptions;
    fn leveldb_writeoptions_destroy(o: *mut RawWriteOptions);
    fn leveldb_writeoptions_set_sync(o: *mut RawWriteOptions, on: c_uchar);

    fn leveldb_free(bytes: *mut c_void);
    fn leveldb_major_version() -> c_int;
    fn leveldb_minor_version() -> c_int;
    // Of the C library.
    fn lockf(file: c_int, command: c_int, len: c_long) -> c_int;
}

/// LevelDB's numbers of its compression methods.
const UNCOMPRESSED: c_int = 0;
const SNAPPY: c_int = 1;
/// One in a hundred absent keys passes the filter, as LevelDB's documentation has it.
const FILTER_BITS_PER_KEY: c_int = 10;

/// The library's version.
pub(crate) fn version() -> (c_int, c_int) {
    // SAFETY: both only return a constant.
    unsafe { (leveldb_major_version(), leveldb_minor_version()) }
}

/// Locks a file against other processes, as LevelDB does, until a descriptor of it is closed.
pub(crate) fn lock(file: &OwnedFd) -> std::io::Result<()> {
    const F_TLOCK: c_int = 2;
    // SAFETY: the descriptor is open, and the call touches no memory of the process.
    let status = unsafe { lockf(file.as_raw_fd(), F_TLOCK, 0) };
    if status == 0 { Ok(()) } else { Err(std::io::Error::last_os_error()) }
}

/// Collects the error text of one call.
struct ErrorSlot(*mut c_char);

impl ErrorSlot {
    fn new() -> ErrorSlot {
        ErrorSlot(ptr::null_mut())
    }

    fn finish(self) -> Result<(), Text> {
        match take_text(self.0) {
            None => Ok(()),
            Some(text) => Err(text),
        }
    }
}

/// Copies and frees a text that LevelDB gave away; `None` for null.
fn take_text(text: *mut c_char) -> Option<Text> {
    let text = NonNull::new(text)?;
    // SAFETY: LevelDB makes such texts with `strdup`: they end with a zero byte, nothing else
    // refers to them, and they are freed once.
    unsafe {
        let copied = CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned();
        leveldb_free(text.as_ptr().cast());
        Some(copied)
    }
}

fn c_path(path: &Path) -> Result<CString, Text> {
    CString::new(path.as_os_str().as_bytes())
        .map_err(|_| "Invalid argument: the path has a zero byte".to_string())
}

fn c_bytes(bytes: &[u8]) -> *const c_char {
    bytes.as_ptr().cast()
}

/// What a database is opened with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Tuning {
    /// Creates a database in a directory without one.
    pub(crate) creates: bool,
    /// Refuses a directory with a database.
    pub(crate) is_new: bool,
    pub(crate) write_buffer_bytes: usize,
    pub(crate) cache_bytes: usize,
    /// With Snappy.
    pub(crate) compresses: bool,
}

/// LevelDB's options, and what they refer to.
struct OpenOptions {
    options: NonNull<RawOptions>,
    cache: NonNull<RawCache>,
    filter: NonNull<RawFilter>,
}

impl OpenOptions {
    fn new(tuning: &Tuning) -> OpenOptions {
        // SAFETY: the constructors take no pointers, and fail only by ending the process.
        let made = unsafe {
            OpenOptions {
                options: not_null(leveldb_options_create()),
                cache: not_null(leveldb_cache_create_lru(tuning.cache_bytes)),
                filter: not_null(leveldb_filterpolicy_create_bloom(FILTER_BITS_PER_KEY)),
            }
        };
        let options = made.options.as_ptr();
        let compression = if tuning.compresses { SNAPPY } else { UNCOMPRESSED };
        // SAFETY: the options are alive; cache and filter outlive them and the database, which is
        // closed first (`Database::drop`).
        unsafe {
            leveldb_options_set_create_if_missing(options, tuning.creates.into());
            leveldb_options_set_error_if_exists(options, tuning.is_new.into());
            // A damaged log or table is an error, not an end of the data.
            leveldb_options_set_paranoid_checks(options, 1);
            leveldb_options_set_write_buffer_size(options, tuning.write_buffer_bytes);
            leveldb_options_set_compression(options, compression);
            leveldb_options_set_cache(options, made.cache.as_ptr());
            leveldb_options_set_filter_policy(options, made.filter.as_ptr());
        }
        made
    }
}

impl Drop for OpenOptions {
    fn drop(&mut self) {
        // SAFETY: the three are owned by this value, and the database that used them is closed.
        unsafe {
            leveldb_options_destroy(self.options.as_ptr());
            leveldb_cache_destroy(self.cache.as_ptr());
            leveldb_filterpolicy_destroy(self.filter.as_ptr());
        }
    }
}

fn not_null<T>(pointer: *mut T) -> NonNull<T> {
    NonNull::new(pointer).expect("LevelDB's constructors return no null")
}

/// Options of reads, of the newest records or of a snapshot.
struct ReadOptions(NonNull<RawReadOptions>);

impl ReadOptions {
    fn new() -> ReadOptions {
        // SAFETY: takes no pointer; the result is alive for the second call.
        unsafe {
            let options = not_null(leveldb_readoptions_create());
            leveldb_readoptions_set_verify_checksums(options.as_ptr(), 1);
            ReadOptions(options)
        }
    }
}

impl Drop for ReadOptions {
    fn drop(&mut self) {
        // SAFETY: owned by this value; LevelDB copies what an iterator needs of them.
        unsafe { leveldb_readoptions_destroy(self.0.as_ptr()) }
    }
}

struct WriteOptions(NonNull<RawWriteOptions>);

impl WriteOptions {
    fn new(sync: bool) -> WriteOptions {
        // SAFETY: takes no pointer; the result is alive for the second call.
        unsafe {
            let options = not_null(leveldb_writeoptions_create());
            leveldb_writeoptions_set_sync(options.as_ptr(), sync.into());
            WriteOptions(options)
        }
    }
}

impl Drop for WriteOptions {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { leveldb_writeoptions_destroy(self.0.as_ptr()) }
    }
}

/// An open database. Dropping it waits for LevelDB's background work and releases the directory.
pub(crate) struct Database {
    db: NonNull<RawDb>,
    newest: ReadOptions,
    synced: WriteOptions,
    unsynced: WriteOptions,
    _options: OpenOptions,
}

// SAFETY: LevelDB documents a database as safe for concurrent use from any thread. The options are
// never changed after `open`.
unsafe impl Send for Database {}
// SAFETY: as above.
unsafe impl Sync for Database {}

impl Drop for Database {
    fn drop(&mut self) {
        // SAFETY: the handle is owned by this value. No iterator or snapshot of it is left: they
        // hold an `Arc` of this value, or borrow from one that does.
        unsafe { leveldb_close(self.db.as_ptr()) }
    }
}

impl Database {
    pub(crate) fn open(dir: &Path, tuning: &Tuning) -> Result<Database, Text> {
        let (name, options) = (c_path(dir)?, OpenOptions::new(tuning));
        let mut error = ErrorSlot::new();
        // SAFETY: options and name are alive during the call; the slot takes the error text.
        let db = unsafe { leveldb_open(options.options.as_ptr(), name.as_ptr(), &mut error.0) };
        error.finish()?;
        let db = NonNull::new(db).ok_or("IO error: LevelDB returned no database")?;
        Ok(Database {
            db,
            newest: ReadOptions::new(),
            synced: WriteOptions::new(true),
            unsynced: WriteOptions::new(false),
            _options: options,
        })
    }

    /// LevelDB's repair of a directory that is not open: a new manifest from what can be read.
    pub(crate) fn repair(dir: &Path, tuning: &Tuning) -> Result<(), Text> {
        let (name, options) = (c_path(dir)?, OpenOptions::new(tuning));
        let mut error = ErrorSlot::new();
        // SAFETY: as in `open`.
        unsafe { leveldb_repair_db(options.options.as_ptr(), name.as_ptr(), &mut error.0) };
        error.finish()
    }

    pub(crate) fn get(&self, key: &[u8]) -> Result<Option<Value>, Text> {
        let (mut len, mut error) = (0, ErrorSlot::new());
        // SAFETY: the handles are alive, `key` is only read during the call.
        let bytes = unsafe {
            let options = self.newest.0.as_ptr();
            leveldb_get(self.db.as_ptr(), options, c_bytes(key), key.len(), &mut len, &mut error.0)
        };
        let value = NonNull::new(bytes).map(|bytes| Value { bytes: bytes.cast(), len });
        error.finish()?;
        Ok(value)
    }

    /// Applies `batch` as a whole. With `sync`, LevelDB's log is synced first.
    pub(crate) fn write(&self, batch: &mut Batch, sync: bool) -> Result<(), Text> {
        let options = if sync { &self.synced } else { &self.unsynced };
        let mut error = ErrorSlot::new();
        // SAFETY: the handles are alive; LevelDB numbers the batch, which is borrowed mutably.
        unsafe {
            leveldb_write(self.db.as_ptr(), options.0.as_ptr(), batch.raw.as_ptr(), &mut error.0);
        }
        error.finish()
    }

    /// Flushes the memtable and compacts what overlaps `[start, limit]`; all without bounds.
    /// LevelDB reports no error: a later write does.
    pub(crate) fn compact(&self, bounds: Option<(&[u8], &[u8])>) {
        let (start, limit) = match bounds {
            None => ((ptr::null(), 0), (ptr::null(), 0)),
            Some((start, limit)) => ((c_bytes(start), start.len()), (c_bytes(limit), limit.len())),
        };
        // SAFETY: the handle is alive; the bounds are null or only read during the call.
        unsafe { leveldb_compact_range(self.db.as_ptr(), start.0, start.1, limit.0, limit.1) }
    }

    /// A property such as `leveldb.stats`; `None` for names that LevelDB does not know.
    pub(crate) fn property(&self, name: &CStr) -> Option<Text> {
        // SAFETY: handle and name are alive during the call.
        take_text(unsafe { leveldb_property_value(self.db.as_ptr(), name.as_ptr()) })
    }

    /// The records as they are now.
    pub(crate) fn snapshot(self: &Arc<Self>) -> Snapshot {
        // SAFETY: the handle is alive.
        let raw = unsafe { leveldb_create_snapshot(self.db.as_ptr()) };
        Snapshot { raw: not_null(raw.cast_mut()), db: Arc::clone(self) }
    }
}

/// A value that LevelDB allocated.
pub struct Value {
    bytes: NonNull<u8>,
    len: usize,
}

// SAFETY: plain bytes of `malloc`, which any thread may read and free.
unsafe impl Send for Value {}
// SAFETY: as above; nothing changes them.
unsafe impl Sync for Value {}

impl AsRef<[u8]> for Value {
    fn as_ref(&self) -> &[u8] {
        // SAFETY: LevelDB allocated `len` bytes and initialized them.
        unsafe { std::slice::from_raw_parts(self.bytes.as_ptr(), self.len) }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        // SAFETY: from `malloc`, owned by this value.
        unsafe { leveldb_free(self.bytes.as_ptr().cast()) }
    }
}

/// The records of one moment. LevelDB keeps old versions of records for it.
pub(crate) struct Snapshot {
    raw: NonNull<RawSnapshot>,
    db: Arc<Database>,
}

// SAFETY: a snapshot is a number in a list that LevelDB guards with the database's lock.
unsafe impl Send for Snapshot {}
// SAFETY: as above; it is never changed.
unsafe impl Sync for Snapshot {}

impl Drop for Snapshot {
    fn drop(&mut self) {
        // SAFETY: owned by this value, whose `Arc` keeps the database open; iterators of it borrow
        // this value, so there are none.
        unsafe { leveldb_release_snapshot(self.db.db.as_ptr(), self.raw.as_ptr()) }
    }
}

impl Snapshot {
    /// An iterator that stands nowhere yet. It pins memtables and tables: do not keep it while
    /// nothing is read. `fills_cache`: blocks that it reads may stay in the cache.
    pub(crate) fn iter(&self, fills_cache: bool) -> Iter<'_> {
        let options = ReadOptions::new();
        // SAFETY: the handles are alive; LevelDB copies the options; the iterator borrows this
        // value, which keeps snapshot and database alive.
        let raw = unsafe {
            leveldb_readoptions_set_snapshot(options.0.as_ptr(), self.raw.as_ptr());
            leveldb_readoptions_set_fill_cache(options.0.as_ptr(), fills_cache.into());
            not_null(leveldb_create_iterator(self.db.db.as_ptr(), options.0.as_ptr()))
        };
        Iter { raw, _snapshot: self }
    }
}

/// A position among the records of a snapshot.
pub(crate) struct Iter<'a> {
    raw: NonNull<RawIter>,
    _snapshot: &'a Snapshot,
}

impl Drop for Iter<'_> {
    fn drop(&mut self) {
        // SAFETY: owned by this value; its snapshot and database are alive.
        unsafe { leveldb_iter_destroy(self.raw.as_ptr()) }
    }
}

impl Iter<'_> {
    /// Moves to the first record whose key is not before `key`.
    pub(crate) fn seek(&mut self, key: &[u8]) {
        // SAFETY: the iterator is alive; `key` is only read during the call.
        unsafe { leveldb_iter_seek(self.raw.as_ptr(), c_bytes(key), key.len()) }
    }

    /// Moves to the next record. Without a current record nothing happens.
    pub(crate) fn advance(&mut self) {
        if self.is_valid() {
            // SAFETY: the iterator is alive and stands on a record, as LevelDB requires.
            unsafe { leveldb_iter_next(self.raw.as_ptr()) }
        }
    }

    fn is_valid(&self) -> bool {
        // SAFETY: the iterator is alive.
        unsafe { leveldb_iter_valid(self.raw.as_ptr()) != 0 }
    }

    /// Key and value of the current record, or `None` at the end, or where LevelDB gave up:
    /// [`Iter::status`] tells.
    pub(crate) fn record(&self) -> Option<(&[u8], &[u8])> {
        if !self.is_valid() {
            return None;
        }
        let (mut key_len, mut value_len) = (0, 0);
        // SAFETY: the iterator stands on a record; LevelDB lends that many bytes until the iterator
        // moves, which needs it mutably. A slice of no bytes needs a pointer that is not null.
        unsafe {
            let key = leveldb_iter_key(self.raw.as_ptr(), &mut key_len);
            let value = leveldb_iter_value(self.raw.as_ptr(), &mut value_len);
            Some((lent(key, key_len), lent(value, value_len)))
        }
    }

    /// Whether the iterator met an error so far. LevelDB steps over what it cannot read, so this
    /// has to be asked before records are believed to be all.
    pub(crate) fn status(&self) -> Result<(), Text> {
        let mut error = ErrorSlot::new();
        // SAFETY: the iterator is alive; the slot takes the error text.
        unsafe { leveldb_iter_get_error(self.raw.as_ptr(), &mut error.0) };
        error.finish()
    }
}

/// # Safety
/// `bytes` points to `len` initialized bytes that live and do not change for `'a`.
unsafe fn lent<'a>(bytes: *const c_char, len: usize) -> &'a [u8] {
    if len == 0 {
        return &[];
    }
    // SAFETY: the caller's promise.
    unsafe { std::slice::from_raw_parts(bytes.cast(), len) }
}

/// Writes that are applied together.
pub struct Batch {
    raw: NonNull<RawBatch>,
    count: usize,
    bytes: usize,
    has_put: bool,
}

// SAFETY: a batch is a byte string that no other thread refers to.
unsafe impl Send for Batch {}

impl Default for Batch {
    fn default() -> Batch {
        // SAFETY: takes no pointer.
        let raw = unsafe { not_null(leveldb_writebatch_create()) };
        Batch { raw, count: 0, bytes: 0, has_put: false }
    }
}

impl Drop for Batch {
    fn drop(&mut self) {
        // SAFETY: owned by this value.
        unsafe { leveldb_writebatch_destroy(self.raw.as_ptr()) }
    }
}

impl Batch {
    /// Adds a put.
    pub fn put(&mut self, key: &[u8], value: &[u8]) {
        // SAFETY: the batch is alive; LevelDB copies the bytes.
        unsafe {
            leveldb_writebatch_put(
                self.raw.as_ptr(),
                c_bytes(key),
                key.len(),
                c_bytes(value),
                value.len(),
            );
        }
        self.has_put = true;
        self.note(key.len() + value.len());
    }

    /// Adds a delete.
    pub fn delete(&mut self, key: &[u8]) {
        // SAFETY: the batch is alive; LevelDB copies the bytes.
        unsafe { leveldb_writebatch_delete(self.raw.as_ptr(), c_bytes(key), key.len()) }
        self.note(key.len());
    }

    /// Adds the writes of `other` after these.
    pub(crate) fn append(&mut self, other: &Batch) {
        // SAFETY: both are alive and distinct; LevelDB copies the bytes.
        unsafe { leveldb_writebatch_append(self.raw.as_ptr(), other.raw.as_ptr()) }
        self.has_put |= other.has_put;
        self.count += other.count;
        self.bytes += other.bytes;
    }

    /// Removes all writes.
    pub(crate) fn clear(&mut self) {
        // SAFETY: the batch is alive.
        unsafe { leveldb_writebatch_clear(self.raw.as_ptr()) }
        (self.count, self.bytes, self.has_put) = (0, 0, false);
    }

    fn note(&mut self, bytes: usize) {
        self.count += 1;
        self.bytes += bytes;
    }

    /// Puts and deletes.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// Bytes of keys and values.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn has_put(&self) -> bool {
        self.has_put
    }
}
