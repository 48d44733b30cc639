//! RocksDB from the shared library of its Java package, which exports the C interface, and with the
//! processor's CRC instruction, which that library does without.
//!
//! Settings are those that its own tuning guide gives to general workloads: Bloom filters of 10
//! bits per key, LZ4, a job for each core, the lock-free cache; the rest are its defaults, dynamic
//! level sizes among them.

use super::c_api::{CApi, CStore, Extension, Handle, symbol};
use crate::Failure;
use crate::engine::{Engine, Setup};
use libloading::Library;
use libloading::os::unix;
use std::path::Path;

/// `include/rocksdb_crc32c.cc`, compiled.
const CRC32C: &str = "librocksdb_crc32c.so";
/// `rocksdb_lz4_compression`.
const LZ4: i32 = 4;

type Create = unsafe extern "C" fn() -> Handle;
type SetFlag = unsafe extern "C" fn(Handle, u8);
type SetInt = unsafe extern "C" fn(Handle, i32);
type SetSize = unsafe extern "C" fn(Handle, usize);
type SetObject = unsafe extern "C" fn(Handle, Handle);

pub(crate) fn open(dir: &Path, setup: &Setup) -> Result<Box<dyn Engine>, Failure> {
    // Its function takes precedence because it is global when RocksDB is loaded.
    load(&setup.rocksdb.with_file_name(CRC32C))?;
    let library = load(&setup.rocksdb)?;
    let options = options(library, setup)?;
    // SAFETY: a constructor.
    let wait_options =
        unsafe { symbol::<Create>(library, "rocksdb_wait_for_compact_options_create")?() };
    let extension = Extension {
        get_pinned: symbol(library, "rocksdb_get_pinned")?,
        pinnableslice_value: symbol(library, "rocksdb_pinnableslice_value")?,
        pinnableslice_destroy: symbol(library, "rocksdb_pinnableslice_destroy")?,
        wait_for_compact: symbol(library, "rocksdb_wait_for_compact")?,
        wait_options,
    };
    let api = CApi::rocksdb(library)?;
    Ok(Box::new(CStore::open(api, Some(extension), c"rocksdb.stats", options, dir)?))
}

/// Loads a library for the rest of the process: RocksDB's threads run until its end.
fn load(path: &Path) -> Result<&'static Library, Failure> {
    // SAFETY: the initialisers of both libraries need nothing of the process.
    let library = unsafe { unix::Library::open(Some(path), unix::RTLD_NOW | unix::RTLD_GLOBAL) };
    let library = library.map_err(|error| format!("{}: {error}", path.display()))?;
    Ok(Box::leak(Box::new(Library::from(library))))
}

fn options(library: &'static Library, setup: &Setup) -> Result<Handle, Failure> {
    let create = |name: &str| -> Result<Handle, Failure> {
        // SAFETY: constructors without arguments.
        Ok(unsafe { symbol::<Create>(library, name)?() })
    };
    let jobs = std::thread::available_parallelism()?.get().max(2) as i32;
    let options = create("rocksdb_options_create")?;
    let table = create("rocksdb_block_based_options_create")?;
    // SAFETY: constructors and setters with the types of the C header; all objects live as long as
    // the process.
    unsafe {
        // An estimated charge of 0: the cache finds out the size of its entries.
        let cache = symbol::<unsafe extern "C" fn(usize, usize) -> Handle>(
            library,
            "rocksdb_cache_create_hyper_clock",
        )?(setup.cache_bytes(), 0);
        let filter = symbol::<unsafe extern "C" fn(f64) -> Handle>(
            library,
            "rocksdb_filterpolicy_create_bloom_full",
        )?(10.0);
        let set_in_table = |name: &str| {
            symbol::<SetObject>(library, &format!("rocksdb_block_based_options_{name}"))
        };
        set_in_table("set_block_cache")?(table, cache);
        set_in_table("set_filter_policy")?(table, filter);
        symbol::<SetFlag>(library, "rocksdb_options_set_create_if_missing")?(options, 1);
        symbol::<SetSize>(library, "rocksdb_options_set_write_buffer_size")?(
            options,
            setup.write_buffer_bytes(),
        );
        symbol::<SetInt>(library, "rocksdb_options_set_max_background_jobs")?(options, jobs);
        symbol::<SetInt>(library, "rocksdb_options_set_compression")?(options, LZ4);
        symbol::<SetFlag>(library, "rocksdb_options_set_use_direct_reads")?(
            options,
            setup.reads_from_disk.into(),
        );
        symbol::<SetObject>(library, "rocksdb_options_set_block_based_table_factory")?(
            options, table,
        );
    }
    Ok(options)
}
