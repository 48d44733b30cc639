//! LevelDB's C interface, which RocksDB has under its own prefix: one store for both.
//!
//! Invariants: a [`CStore`] owns its database and options until it is dropped; an iterator and a
//! batch live no longer than one call. Threads: both libraries allow every call used here from any
//! thread.

use crate::Failure;
use crate::data::Key;
use crate::engine::{Engine, SETTLE_MAX};
use crate::usage;
use libloading::Library;
use std::ffi::{CStr, CString, c_char, c_void};
use std::path::Path;
use std::ptr;

/// An object of the library.
pub(super) type Handle = *mut c_void;
/// Where a call leaves the text of its error.
pub(super) type ErrorText = *mut *mut c_char;

/// Declares the functions once, as fields of [`CApi`] and as symbols of the LevelDB that is linked.
macro_rules! c_api {
    ($($name:ident($($argument:ident: $kind:ty),*) $(-> $result:ty)?;)*) => {
        pub(super) struct CApi {
            $($name: unsafe extern "C" fn($($kind),*) $(-> $result)?,)*
        }

        mod leveldb {
            use super::*;
            use cruzbit_leveldb_sys as _;

            unsafe extern "C" {
                $(
                    #[link_name = concat!("leveldb_", stringify!($name))]
                    pub(super) fn $name($($argument: $kind),*) $(-> $result)?;
                )*
            }
        }

        impl CApi {
            /// The functions of the LevelDB that is linked into this program.
            pub(super) fn leveldb() -> CApi {
                CApi { $($name: leveldb::$name,)* }
            }

            /// The functions of a RocksDB library, which must stay loaded.
            pub(super) fn rocksdb(library: &'static Library) -> Result<CApi, Failure> {
                Ok(CApi {
                    $($name: symbol(library, concat!("rocksdb_", stringify!($name)))?,)*
                })
            }
        }
    };
}

c_api! {
    open(options: Handle, path: *const c_char, error: ErrorText) -> Handle;
    close(db: Handle);
    put(
        db: Handle, options: Handle, key: *const c_char, key_bytes: usize, value: *const c_char,
        value_bytes: usize, error: ErrorText
    );
    delete(
        db: Handle, options: Handle, key: *const c_char, key_bytes: usize, error: ErrorText
    );
    write(db: Handle, options: Handle, batch: Handle, error: ErrorText);
    get(
        db: Handle, options: Handle, key: *const c_char, key_bytes: usize, value_bytes: *mut usize,
        error: ErrorText
    ) -> *mut c_char;
    property_value(db: Handle, name: *const c_char) -> *mut c_char;
    create_iterator(db: Handle, options: Handle) -> Handle;
    iter_destroy(iterator: Handle);
    iter_valid(iterator: Handle) -> u8;
    iter_seek(iterator: Handle, key: *const c_char, key_bytes: usize);
    iter_next(iterator: Handle);
    iter_key(iterator: Handle, bytes: *mut usize) -> *const c_char;
    iter_value(iterator: Handle, bytes: *mut usize) -> *const c_char;
    iter_get_error(iterator: Handle, error: ErrorText);
    writebatch_create() -> Handle;
    writebatch_destroy(batch: Handle);
    writebatch_put(
        batch: Handle, key: *const c_char, key_bytes: usize, value: *const c_char,
        value_bytes: usize
    );
    readoptions_create() -> Handle;
    writeoptions_create() -> Handle;
    free(memory: Handle);
}

/// A function of `library`; `F` must be its type.
pub(super) fn symbol<F: Copy>(library: &'static Library, name: &str) -> Result<F, Failure> {
    // SAFETY: the callers name functions of the C header with the types declared there.
    Ok(*unsafe { library.get::<F>(name) }?)
}

/// What RocksDB has beyond LevelDB: a read without a copy of the value, and a wait for compactions.
pub(super) struct Extension {
    pub(super) get_pinned:
        unsafe extern "C" fn(Handle, Handle, *const c_char, usize, ErrorText) -> Handle,
    pub(super) pinnableslice_value: unsafe extern "C" fn(Handle, *mut usize) -> *const c_char,
    pub(super) pinnableslice_destroy: unsafe extern "C" fn(Handle),
    pub(super) wait_for_compact: unsafe extern "C" fn(Handle, Handle, ErrorText),
    pub(super) wait_options: Handle,
}

pub(super) struct CStore {
    api: CApi,
    extension: Option<Extension>,
    stats_property: &'static CStr,
    db: Handle,
    reading: Handle,
    writing: Handle,
}

// SAFETY: databases and options of both libraries are used from any thread at a time.
unsafe impl Send for CStore {}
// SAFETY: as above.
unsafe impl Sync for CStore {}

impl CStore {
    /// Opens the database in `dir` with the library's `options`.
    pub(super) fn open(
        api: CApi,
        extension: Option<Extension>,
        stats_property: &'static CStr,
        options: Handle,
        dir: &Path,
    ) -> Result<CStore, Failure> {
        let path = CString::new(dir.as_os_str().as_encoded_bytes())?;
        // SAFETY: `options` is alive; the path is a C string.
        let db = api.checked(|error| unsafe { (api.open)(options, path.as_ptr(), error) })?;
        // SAFETY: constructors without conditions.
        let (reading, writing) =
            unsafe { ((api.readoptions_create)(), (api.writeoptions_create)()) };
        Ok(CStore { api, extension, stats_property, db, reading, writing })
    }
}

impl CApi {
    /// Runs `call` and turns the text that it leaves into an error.
    fn checked<T>(&self, call: impl FnOnce(ErrorText) -> T) -> Result<T, Failure> {
        let mut error = ptr::null_mut();
        let result = call(&mut error);
        if error.is_null() {
            return Ok(result);
        }
        // SAFETY: the library left a C string, which is the caller's to free.
        let text = unsafe {
            let text = CStr::from_ptr(error).to_string_lossy().into_owned();
            (self.free)(error.cast());
            text
        };
        Err(text.into())
    }
}

/// # Safety
/// `data` must point to `bytes` bytes that live as long as the result is used.
unsafe fn slice<'a>(data: *const c_char, bytes: usize) -> &'a [u8] {
    // SAFETY: by the caller.
    unsafe { std::slice::from_raw_parts(data.cast(), bytes) }
}

impl Engine for CStore {
    fn put(&self, key: &Key, value: &[u8]) -> Result<(), Failure> {
        // SAFETY: key and value are valid for the call.
        self.api.checked(|error| unsafe {
            (self.api.put)(
                self.db,
                self.writing,
                key.as_ptr().cast(),
                key.len(),
                value.as_ptr().cast(),
                value.len(),
                error,
            );
        })
    }

    fn delete(&self, key: &Key) -> Result<(), Failure> {
        // SAFETY: the key is valid for the call.
        self.api.checked(|error| unsafe {
            (self.api.delete)(self.db, self.writing, key.as_ptr().cast(), key.len(), error);
        })
    }

    fn write_batch(&self, records: &[(Key, &[u8])]) -> Result<(), Failure> {
        // SAFETY: the batch copies each record, and lives until it is destroyed below.
        unsafe {
            let batch = (self.api.writebatch_create)();
            for (key, value) in records {
                let (key_bytes, value_bytes) = (key.len(), value.len());
                let (key, value) = (key.as_ptr().cast(), value.as_ptr().cast());
                (self.api.writebatch_put)(batch, key, key_bytes, value, value_bytes);
            }
            let written =
                self.api.checked(|error| (self.api.write)(self.db, self.writing, batch, error));
            (self.api.writebatch_destroy)(batch);
            written
        }
    }

    fn get(&self, key: &Key, take: &mut dyn FnMut(&[u8])) -> Result<bool, Failure> {
        let (data, mut bytes) = (key.as_ptr().cast(), 0);
        // SAFETY: a value that is not null has `bytes` bytes until it is destroyed or freed.
        unsafe {
            if let Some(extension) = &self.extension {
                let found = self.api.checked(|error| {
                    (extension.get_pinned)(self.db, self.reading, data, key.len(), error)
                })?;
                if found.is_null() {
                    return Ok(false);
                }
                let value = (extension.pinnableslice_value)(found, &mut bytes);
                take(slice(value, bytes));
                (extension.pinnableslice_destroy)(found);
                return Ok(true);
            }
            let value = self.api.checked(|error| {
                (self.api.get)(self.db, self.reading, data, key.len(), &mut bytes, error)
            })?;
            if value.is_null() {
                return Ok(false);
            }
            take(slice(value, bytes));
            (self.api.free)(value.cast());
            Ok(true)
        }
    }

    fn scan(
        &self,
        start: &[u8],
        limit: u64,
        take: &mut dyn FnMut(&[u8], &[u8]),
    ) -> Result<u64, Failure> {
        let api = &self.api;
        let mut count = 0;
        // SAFETY: key and value are valid until the iterator moves.
        unsafe {
            let iterator = (api.create_iterator)(self.db, self.reading);
            (api.iter_seek)(iterator, start.as_ptr().cast(), start.len());
            while count < limit && (api.iter_valid)(iterator) != 0 {
                let (mut key_bytes, mut value_bytes) = (0, 0);
                let key = (api.iter_key)(iterator, &mut key_bytes);
                let value = (api.iter_value)(iterator, &mut value_bytes);
                take(slice(key, key_bytes), slice(value, value_bytes));
                count += 1;
                (api.iter_next)(iterator);
            }
            let outcome = api.checked(|error| (api.iter_get_error)(iterator, error));
            (api.iter_destroy)(iterator);
            outcome?;
        }
        Ok(count)
    }

    fn settle(&self) -> Result<(), Failure> {
        if let Some(extension) = &self.extension {
            // SAFETY: the options live as long as the process.
            self.api.checked(|error| unsafe {
                (extension.wait_for_compact)(self.db, extension.wait_options, error);
            })?;
        }
        usage::wait_for_quiet_threads(SETTLE_MAX)
    }

    fn stats(&self) -> serde_json::Value {
        // SAFETY: the result is a C string that the caller frees, or null.
        unsafe {
            let text = (self.api.property_value)(self.db, self.stats_property.as_ptr());
            if text.is_null() {
                return serde_json::Value::Null;
            }
            let owned = CStr::from_ptr(text).to_string_lossy().into_owned();
            (self.api.free)(text.cast());
            owned.into()
        }
    }

    fn close(self: Box<Self>) -> Result<(), Failure> {
        // SAFETY: the last use of the database. The options go with the process.
        unsafe { (self.api.close)(self.db) };
        Ok(())
    }
}
