//! Whose code a function is: pictures colour by it.

/// Where a function comes from. The numbers stand in pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Origin {
    /// The program's own Rust.
    Own = 0,
    /// Rust's libraries and other packages.
    Library = 1,
    /// The kernel.
    Kernel = 2,
    /// C, and what else is not Rust.
    Native = 3,
    /// There was no name.
    Unknown = 4,
}

/// Crates that come with the compiler.
const STANDARD_CRATES: &[&str] =
    &["std", "core", "alloc", "proc_macro", "test", "std_detect", "panic_unwind"];

/// Parts of the paths of sources that are not the program's: the compiler's own, and packages.
const LIBRARY_DIRS: &[&str] = &["/rustc/", "rustlib/", "/registry/", "/git/checkouts/", "/vendor/"];

/// Told by the form of the name and by the source file.
pub(super) fn of(name: &str, file: &str, is_kernel: bool) -> Origin {
    if is_kernel || file == "kernel" {
        return Origin::Kernel;
    }
    if name.is_empty() || name.starts_with("0x") {
        return Origin::Unknown;
    }
    let Some((first, _)) = name.split_once("::") else {
        let is_runtime =
            ["__rust", "__rdl", "__rg", "rust_"].iter().any(|prefix| name.starts_with(prefix));
        return match (is_runtime, file.ends_with(".rs")) {
            (true, _) => Origin::Library,
            // Line tables have inlined functions without their modules.
            (false, true) if is_of_library(file) => Origin::Library,
            (false, true) => Origin::Own,
            (false, false) => Origin::Native,
        };
    };
    // `<kvant_engine::Db as core::ops::Drop>::drop`, `<&mut kvant_base::X as ...`: the type's
    // crate.
    let first = first.rsplit(['<', '&', '*', ' ', '(', '[', '!']).next().unwrap_or(first);
    // `<T as kvant_engine::Merge>::merge` names no crate first: the trait's.
    let is_library = STANDARD_CRATES.contains(&first)
        || is_of_library(file)
        || (file.is_empty() && !first.starts_with("kvant"));
    if file.ends_with(".c")
        || file.ends_with(".cc")
        || file.ends_with(".cpp")
        || file.ends_with(".h")
    {
        Origin::Native
    } else if is_library {
        Origin::Library
    } else {
        Origin::Own
    }
}

fn is_of_library(file: &str) -> bool {
    LIBRARY_DIRS.iter().any(|dir| file.contains(dir))
}

#[cfg(test)]
mod tests;
