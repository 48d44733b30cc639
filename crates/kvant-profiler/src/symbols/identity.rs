//! What a process can name: the programs and libraries that it runs itself, and the kernel that it
//! runs on.
//!
//! A client that runs the same build as the server need not spend the server's time on names: it
//! states what it can name, and the server leaves those addresses to it.

use super::{kernel, modules};
use crate::maps;
use crate::recording::Recording;
use kvant_env::host::read_text;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Identities of programs and kernels: build ids in hexadecimal, and the kernel's boot id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identities(BTreeSet<String>);

impl Identities {
    /// Parses a comma-separated list, as [`Identities::to_text`] makes it.
    pub fn of_text(text: &str) -> Identities {
        let parts = text.split(',').filter(|part| !part.is_empty());
        Identities(parts.map(str::to_owned).collect())
    }

    /// A comma-separated list.
    pub fn to_text(&self) -> String {
        let parts: Vec<&str> = self.0.iter().map(String::as_str).collect();
        parts.join(",")
    }

    /// Whether a process with these identities can name everything in `recording`, which this
    /// process or another one on this machine made.
    pub fn can_name(&self, recording: &Recording) -> bool {
        let has_kernel = recording.frames.iter().any(|frame| frame.is_kernel);
        let knows_kernel = || boot_id().is_some_and(|id| self.0.contains(&id));
        let by_file = modules::frames_by_file(recording);
        let has_vdso = by_file.contains_key(&Some("[vdso]"));
        let knows_vdso = || boot_id().is_some_and(|id| self.0.contains(&vdso_of(&id)));
        let mut files = by_file.into_keys().flatten().filter(|path| path.starts_with('/'));
        (!has_kernel || knows_kernel())
            && (!has_vdso || knows_vdso())
            && files.all(|path| {
                modules::of_file(recording, Some(path)).all(|module| {
                    !module.build_id.is_empty() && self.0.contains(&hex(&module.build_id))
                })
            })
    }
}

/// What this process can name.
pub fn visible() -> Identities {
    let modules = maps::own_modules().into_iter();
    let files = modules.filter(|module| !module.build_id.is_empty());
    let kernel = boot_id().filter(|_| kernel::is_visible());
    let vdso = boot_id().map(|id| vdso_of(&id));
    Identities(files.map(|module| hex(&module.build_id)).chain(kernel).chain(vdso).collect())
}

/// The code that a kernel maps into every process, which has names where the kernel has none.
fn vdso_of(boot_id: &str) -> String {
    format!("vdso:{boot_id}")
}

/// The file with this build id that this process executes.
pub(super) fn own_file(build_id: &[u8]) -> Option<PathBuf> {
    let modules = maps::own_modules();
    let index = modules.iter().position(|module| module.build_id == build_id)?;
    Some(PathBuf::from(if index == 0 { maps::OWN_PROGRAM } else { &modules[index].path }))
}

fn boot_id() -> Option<String> {
    let id = read_text(Path::new("/proc/sys/kernel/random/boot_id")).ok()?;
    Some(id.trim().to_owned())
}

pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
