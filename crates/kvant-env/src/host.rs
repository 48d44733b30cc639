//! The host: memory and CPUs available to this process, and files outside the database.
//!
//! Available memory is the lower of the machine's and the control group's limit (version 1 or 2).
//! The kernel kills a process that exceeds its group's limit. [`procfs`] reads the kernel's CPU
//! times, [`own`] those of this process several times per second.

pub mod own;
pub mod procfs;

use std::ffi::OsString;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::thread;

/// Memory that this process may use; `None` if unknown.
pub fn memory_bytes() -> Option<u64> {
    memory_bytes_from(&|path| read_text(path).ok())
}

/// CPUs that this process may use; 1 if unknown.
pub fn cpu_count() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The names of all files and directories in a directory outside the database, in no order.
pub fn names_in(dir: &Path) -> io::Result<Vec<OsString>> {
    fs::read_dir(dir)?.map(|entry| entry.map(|entry| entry.file_name())).collect()
}

/// Reads a text file outside the database to its end; `InvalidData` if it is not UTF-8. Pipes and
/// kernel files have no length.
pub fn read_text(path: &Path) -> io::Result<String> {
    fs::read_to_string(path)
}

/// Reads a file outside the database to its end, as [`read_text`].
pub fn read_bytes(path: &Path) -> io::Result<Vec<u8>> {
    fs::read(path)
}

/// Whether there is a file outside the database with this path.
pub fn is_file(path: &Path) -> bool {
    path.is_file()
}

/// Writes a file outside the database and creates missing directories. Nothing is synced.
pub fn write_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    if let Some(dir) = path.parent() {
        fs::create_dir_all(dir)?;
    }
    fs::write(path, contents)
}

/// Replaces a file outside the database as a whole: if that fails, the old one is as it was.
/// Nothing is synced.
pub fn replace_file(path: &Path, contents: &[u8]) -> io::Result<()> {
    let new = path.with_added_extension("new");
    write_file(&new, contents)?;
    fs::rename(&new, path)
}

/// Creates or truncates a file outside the database and creates missing directories. The writer is
/// buffered; nothing is synced.
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

/// The limits of the group in a line (`ID:CONTROLLERS:PATH`) of `/proc/self/cgroup`, and of its
/// ancestors.
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
    // In a container the path may be the host's, which is not mounted here. Then only the mount's
    // root has a limit.
    Path::new(path.trim_start_matches('/'))
        .ancestors()
        .filter_map(|group| read(&Path::new(root).join(group).join(file))?.trim().parse().ok())
        .collect()
}

#[cfg(test)]
mod tests;
