//! Names of kernel functions.

use crate::recording::{Frame, Function};
use kvant_env::host::read_text;
use std::io;
use std::path::Path;

/// The kernel's symbols: address, kind, name, and module if it has one. Without permission all
/// addresses are 0.
const SYMBOLS: &str = "/proc/kallsyms";
/// No kernel function is longer: an address farther from the preceding symbol belongs to none.
const FUNCTION_BYTES_MAX: u64 = 1 << 20;

/// Names the kernel frames among `frames`.
pub(super) fn name_all(
    frames: &[Frame],
    symbols: &mut [Vec<Function>],
    problems: &mut Vec<String>,
) {
    if !frames.iter().any(|frame| frame.is_kernel) {
        return;
    }
    let text = read_text(Path::new(SYMBOLS)).unwrap_or_else(|error: io::Error| {
        problems.push(format!("{SYMBOLS}: {error}"));
        String::new()
    });
    let functions = functions_of(&text);
    if functions.is_empty() && !text.is_empty() {
        problems.push(format!(
            "{SYMBOLS}: the system hides addresses from this process (kernel.kptr_restrict)"
        ));
    }
    for (frame, symbols) in frames.iter().zip(symbols).filter(|(frame, _)| frame.is_kernel) {
        let address = frame.lookup_address();
        let after = functions.partition_point(|(start, ..)| *start <= address);
        let near =
            functions[..after].last().filter(|(start, ..)| address - start < FUNCTION_BYTES_MAX);
        *symbols = vec![match near {
            Some((_, name, module)) => Function::new(*name, &file_of(module)),
            None => Function::new(format!("{:#x}", frame.address), "kernel"),
        }];
    }
}

pub(super) fn is_visible() -> bool {
    read_text(Path::new(SYMBOLS))
        .is_ok_and(|text| text.lines().take(100).any(|line| parse(line).is_some()))
}

fn file_of(module: &str) -> String {
    format!("kernel {module}").trim_end().to_owned()
}

/// Addresses, names and modules, ordered by address.
fn functions_of(text: &str) -> Vec<(u64, &str, &str)> {
    let mut functions: Vec<_> = text.lines().filter_map(parse).collect();
    functions.sort_by_key(|(address, ..)| *address);
    functions
}

/// Parses `ffffffff81000000 T name [module]`; `None` unless it is a function with an address.
fn parse(line: &str) -> Option<(u64, &str, &str)> {
    let mut parts = line.split_whitespace();
    let address = u64::from_str_radix(parts.next()?, 16).ok()?;
    let is_code = matches!(parts.next()?, "t" | "T" | "w" | "W");
    let name = parts.next()?;
    (is_code && address != 0).then_some((address, name, parts.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests;
