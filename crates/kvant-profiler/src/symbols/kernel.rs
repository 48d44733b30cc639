//! Names of the kernel's functions.

use super::{nameless, probe};
use crate::recording::{Frame, Function};
use kvant_env::host::read_text;
use std::io;
use std::path::Path;

/// What the system shows of its symbols: addresses, kinds, names, and the modules of those that are
/// loaded. Without permission all addresses are 0.
const SYMBOLS: &str = "/proc/kallsyms";
/// No function of a kernel is longer: what is farther from the symbol before it is something else.
const FUNCTION_BYTES_MAX: u64 = 1 << 20;

/// Names the frames at `indices`, which are the kernel's; returns how many have the name of a
/// function.
pub(super) fn name_all(
    frames: &[Frame],
    indices: &[usize],
    symbols: &mut [Vec<Function>],
    problems: &mut Vec<String>,
) -> usize {
    if indices.is_empty() {
        return 0;
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
    let mut named_count = 0;
    for &index in indices {
        let address = probe(&frames[index]);
        let after = functions.partition_point(|(start, ..)| *start <= address);
        let near =
            functions[..after].last().filter(|(start, ..)| address - start < FUNCTION_BYTES_MAX);
        named_count += usize::from(near.is_some());
        symbols[index] = match near {
            Some((_, name, module)) => nameless((*name).to_owned(), &file_of(module)),
            None => nameless(format!("{:#x}", frames[index].address), "kernel"),
        };
    }
    named_count
}

/// Whether the system shows the addresses of its functions.
pub(super) fn is_visible() -> bool {
    read_text(Path::new(SYMBOLS))
        .is_ok_and(|text| text.lines().take(100).any(|line| parse(line).is_some()))
}

fn file_of(module: &str) -> String {
    match module {
        "" => "kernel".to_owned(),
        module => format!("kernel {module}"),
    }
}

/// Addresses, names and modules, in the order of the addresses.
fn functions_of(text: &str) -> Vec<(u64, &str, &str)> {
    let mut functions: Vec<_> = text.lines().filter_map(parse).collect();
    functions.sort_by_key(|(address, ..)| *address);
    functions
}

/// `ffffffff81000000 T name [module]`, if it is a function with an address.
fn parse(line: &str) -> Option<(u64, &str, &str)> {
    let mut parts = line.split_whitespace();
    let address = u64::from_str_radix(parts.next()?, 16).ok()?;
    let is_code = matches!(parts.next()?, "t" | "T" | "w" | "W");
    let name = parts.next()?;
    (is_code && address != 0).then_some((address, name, parts.next().unwrap_or_default()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_functions_with_addresses_or_nothing() {
        let text = "ffffffff81000100 T later\nffffffff81000000 t first\nffffffff81000200 D data\n\
                    0000000000000000 T hidden\nffffffffa0000000 t read [ext4]\nnonsense\n";
        assert_eq!(
            functions_of(text),
            [
                (0xffff_ffff_8100_0000, "first", ""),
                (0xffff_ffff_8100_0100, "later", ""),
                (0xffff_ffff_a000_0000, "read", "[ext4]"),
            ]
        );
        assert_eq!((file_of(""), file_of("[ext4]")), ("kernel".into(), "kernel [ext4]".into()));
    }
}
