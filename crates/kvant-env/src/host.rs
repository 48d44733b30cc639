//! The host: how much memory and how many processors this process may use, and files that are the
//! operator's or the kernel's.
//!
//! Memory is what the machine has, or the limit of the control group (version 1 or 2) where that is
//! lower: a process that takes the machine for its own inside a container is killed by the kernel.
//! [`procfs`] has the kernel's account of CPU time.

pub mod procfs;

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

/// Bytes of memory that this process may use; `None` where the system does not tell.
pub fn memory_bytes() -> Option<u64> {
    memory_bytes_from(&|path| read_text(path).ok())
}

/// Processors that this process may use; 1 where the system does not tell.
pub fn cpu_count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The whole text of a file that is not the database's: it is read until its end, because pipes and
/// the kernel's files do not know their length.
///
/// # Errors
/// As the system reports them; `InvalidData` for text that is not UTF-8.
pub fn read_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// The whole of a file that is not the database's; read until its end, as [`read_text`] is.
///
/// # Errors
/// As the system reports them.
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Writes a file that is not the database's, creating its directory if there is none. Nothing is
/// synced.
///
/// # Errors
/// As the system reports them.
pub fn write_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, contents)
}

/// Creates a file that is not the database's, or empties it, and its directory if there is none.
/// For what grows while the process runs; buffered, and nothing is synced.
///
/// # Errors
/// As the system reports them.
pub fn create_file(path: &Path) -> io::Result<Box<dyn Write + Send>> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    Ok(Box::new(io::BufWriter::new(fs::File::create(path)?)))
}

fn memory_bytes_from(read: &dyn Fn(&Path) -> Option<String>) -> Option<u64> {
    let machine = read(Path::new("/proc/meminfo")).and_then(|text| machine_bytes(&text));
    let cgroups = read(Path::new("/proc/self/cgroup")).unwrap_or_default();
    cgroups.lines().flat_map(|line| cgroup_limits(line, read)).chain(machine).min()
}

fn machine_bytes(meminfo: &str) -> Option<u64> {
    let rest = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kib: u64 = rest.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

/// The limits that hold for one line (`ID:CONTROLLERS:PATH`) of `/proc/self/cgroup`: the group's
/// own and its ancestors'.
fn cgroup_limits(line: &str, read: &dyn Fn(&Path) -> Option<String>) -> Vec<u64> {
    let mut parts = line.splitn(3, ':').skip(1);
    let (Some(controllers), Some(path)) = (parts.next(), parts.next()) else {
        return Vec::new();
    };
    let (root, file) = if controllers.is_empty() {
        ("/sys/fs/cgroup", "memory.max")
    } else if controllers.split(',').any(|name| name == "memory") {
        ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
    } else {
        return Vec::new();
    };
    // Inside a container the path may be the host's and not be mounted here: then only the root of
    // the mount tells.
    Path::new(path.trim_start_matches('/'))
        .ancestors()
        .filter_map(|group| read(&Path::new(root).join(group).join(file))?.trim().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests;
