//! CPU affinity: `--selector-cpus` binds each selector to one CPU.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// The problem of binding threads to `cpus`, if some do not exist or this process may not use them.
pub fn cpus_problem(cpus: &[usize]) -> Option<String> {
    if cpus.is_empty() {
        return None;
    }
    let allowed = match allowed() {
        Ok(allowed) => allowed,
        Err(error) => {
            return Some(format!("cannot ask the system for this process' CPUs: {error}"));
        }
    };
    let is_usable = |cpu: usize| cpu < CpuSet::MAX_CPU && allowed.is_set(cpu);
    let mut unusable: Vec<usize> = cpus.iter().copied().filter(|&cpu| !is_usable(cpu)).collect();
    unusable.sort_unstable();
    unusable.dedup();
    if unusable.is_empty() {
        return None;
    }
    let usable: Vec<usize> = (0..CpuSet::MAX_CPU).filter(|&cpu| is_usable(cpu)).collect();
    Some(format!(
        "CPU {} does not exist or is not allowed to this process: use {}",
        list(&unusable),
        list(&usable)
    ))
}

/// The CPUs that the calling thread may run on.
pub(crate) fn allowed() -> io::Result<CpuSet> {
    Ok(sched_getaffinity(None)?)
}

/// Binds the calling thread, and threads that it starts, to one CPU.
pub(crate) fn bind_to(cpu: usize) -> io::Result<()> {
    let mut cpus = CpuSet::new();
    cpus.set(cpu);
    allow(&cpus)
}

/// Lets the calling thread run on these CPUs.
pub(crate) fn allow(cpus: &CpuSet) -> io::Result<()> {
    Ok(sched_setaffinity(None, cpus)?)
}

fn list(cpus: &[usize]) -> String {
    let numbers: Vec<String> = cpus.iter().map(usize::to_string).collect();
    numbers.join(", ")
}
