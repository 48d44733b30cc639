//! LevelDB 1.23, compiled from its crate: Bloom filters of 10 bits per key, Snappy.

use super::c_api::{CApi, CStore};
use crate::Failure;
use crate::engine::{Engine, Setup};
use cruzbit_leveldb_sys as sys;
use std::path::Path;

/// Open tables; the default of 1,000 would reopen tables of large databases.
const OPEN_FILES_MAX: i32 = 10_000;

pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
    // SAFETY: constructors and setters; cache and filter live as long as the process.
    let options = unsafe {
        let options = sys::leveldb_options_create();
        sys::leveldb_options_set_create_if_missing(options, 1);
        sys::leveldb_options_set_write_buffer_size(options, setup.write_buffer_bytes());
        sys::leveldb_options_set_max_open_files(options, OPEN_FILES_MAX);
        let cache = sys::leveldb_cache_create_lru(setup.cache_bytes());
        sys::leveldb_options_set_cache(options, cache);
        let filter = sys::leveldb_filterpolicy_create_bloom(10);
        sys::leveldb_options_set_filter_policy(options, filter);
        sys::leveldb_options_set_compression(options, sys::Compression::Snappy);
        options
    };
    let store = CStore::open(CApi::leveldb(), None, c"leveldb.stats", options.cast(), dir)?;
    Ok(Box::new(store))
}
