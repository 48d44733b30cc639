//! What a process can name: the programs and libraries that it runs itself, and the kernel that it
//! runs on.
//!
//! A client that runs the same build as the server needs none of the server's time to name its
//! addresses: it says what it can name, and the server leaves the rest to it.

use super::elf::{self, Layout};
use super::kernel;
use crate::recording::Recording;
use kvant_env::host::read_text;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Identities of programs and kernels, as text: build ids in hexadecimal, and the kernel's boot id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identities(BTreeSet<String>);

impl Identities {
    /// Those in a list with commas between them, as [`Identities::to_text`] makes it.
    pub fn of_text(text: &str) -> Identities {
        let parts = text.split(',').filter(|part| !part.is_empty());
        Identities(parts.map(str::to_owned).collect())
    }

    /// A list with commas between them.
    pub fn to_text(&self) -> String {
        let parts: Vec<&str> = self.0.iter().map(String::as_str).collect();
        parts.join(",")
    }

    /// Whether whoever can name these can name everything in `recording`, which was made by this
    /// process or on this machine.
    pub fn can_name(&self, recording: &Recording) -> bool {
        let has_kernel = recording.frames.iter().any(|frame| frame.is_kernel);
        let knows_kernel = || boot_id().is_some_and(|id| self.0.contains(&id));
        let files = super::by_file(recording).into_keys().flatten();
        let mut files = files.filter(|path| path.starts_with('/'));
        (!has_kernel || knows_kernel())
            && files.all(|path| {
                super::of_file(recording, Some(path)).all(|module| {
                    !module.build_id.is_empty() && self.0.contains(&hex(&module.build_id))
                })
            })
    }
}

/// What the own process can name.
pub fn visible() -> Identities {
    let files = own_files().into_iter().map(|(build_id, _)| hex(&build_id));
    let kernel = boot_id().filter(|_| kernel::is_visible());
    Identities(files.chain(kernel).collect())
}

/// The file that the own process has mapped and that has this build id.
pub(super) fn own_file(build_id: &[u8]) -> Option<PathBuf> {
    let mut files = own_files().into_iter();
    files.find(|(id, _)| id == build_id).map(|(_, path)| path)
}

/// The files that the own process executes, with their build ids; those without one are left out.
fn own_files() -> Vec<(Vec<u8>, PathBuf)> {
    let Ok(maps) = read_text(Path::new("/proc/self/maps")) else {
        return Vec::new();
    };
    let is_executable =
        |line: &&str| line.split_whitespace().nth(1).is_some_and(|access| access.contains('x'));
    let paths: BTreeSet<&str> = maps
        .lines()
        .filter(is_executable)
        .filter(|line| elf::range_of(line).is_some())
        .filter_map(|line| line.find('/').map(|at| &line[at..]))
        .collect();
    let files = paths.into_iter().filter_map(|path| {
        // The own program may have been replaced since it was started.
        let path = match path.strip_suffix(" (deleted)") {
            None => PathBuf::from(path),
            Some(_) => PathBuf::from("/proc/self/exe"),
        };
        let build_id = Layout::read(&path).ok()?.build_id;
        (!build_id.is_empty()).then_some((build_id, path))
    });
    files.collect()
}

fn boot_id() -> Option<String> {
    let id = read_text(Path::new("/proc/sys/kernel/random/boot_id")).ok()?;
    Some(id.trim().to_owned())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
