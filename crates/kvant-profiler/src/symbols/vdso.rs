//! The symbols of `[vdso]`, the code that the kernel maps into every process.

use crate::maps::Mapping;
use kvant_env::Fs;
use kvant_env::posix::PosixFs;
use object::{Object as _, ObjectSymbol as _};
use std::io;
use std::path::Path;

/// The functions with their offsets, read from this process, as they are the same in all.
pub(super) fn functions() -> io::Result<Vec<(u64, String)>> {
    let invalid = |what: &str| io::Error::new(io::ErrorKind::InvalidData, what.to_owned());
    let mappings = Mapping::read_all()?;
    let vdso = mappings.iter().find(|mapping| mapping.name == "[vdso]");
    let vdso = vdso.ok_or_else(|| invalid("this process has no [vdso]"))?;
    let mut image = vec![0; vdso.end - vdso.start];
    let memory = PosixFs::new().open(Path::new("/proc/self/mem"))?;
    memory.read_exact_at(&mut image, vdso.start as u64)?;
    let file = object::File::parse(&image[..]).map_err(|error| invalid(&error.to_string()))?;
    let symbols = file.dynamic_symbols().filter(|symbol| symbol.is_definition());
    let mut functions: Vec<(u64, String)> = symbols
        .filter_map(|symbol| Some((symbol.address(), symbol.name().ok()?.to_owned())))
        .collect();
    functions.sort_unstable();
    // Most have an alias; the first name has the prefix `__vdso`.
    functions.dedup_by_key(|(address, _)| *address);
    Ok(functions)
}
