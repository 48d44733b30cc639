//! Which module contains a frame.

use crate::recording::{Module, Recording};
use std::collections::BTreeMap;

/// The modules that are mapped from the file at `path`.
pub(super) fn of_file<'a>(
    recording: &'a Recording,
    path: Option<&'a str>,
) -> impl Iterator<Item = &'a Module> {
    let modules = recording.facts.modules.iter();
    modules.filter(move |module| Some(&module.path[..]) == path)
}

/// The indices of user-space frames by file, `None` for those in no module. They are ordered by
/// address, so that neighbours share debug information.
pub(super) fn frames_by_file(recording: &Recording) -> BTreeMap<Option<&str>, Vec<usize>> {
    let mut modules: Vec<&Module> = recording.facts.modules.iter().collect();
    modules.sort_by_key(|module| module.start);
    let mut by_file: BTreeMap<Option<&str>, Vec<usize>> = BTreeMap::new();
    for (index, frame) in recording.frames.iter().enumerate().filter(|(_, frame)| !frame.is_kernel)
    {
        let address = frame.lookup_address();
        let after = modules.partition_point(|module| module.start <= address);
        let module = modules[..after].last().filter(|module| module.contains(address));
        by_file.entry(module.map(|module| &module.path[..])).or_default().push(index);
    }
    for frames in by_file.values_mut() {
        frames.sort_unstable_by_key(|&index| recording.frames[index].address);
    }
    by_file
}
