//! Where a function comes from, which decides its colour.

/// The origin of a function. Pages contain the numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Origin {
    /// The program's own Rust code.
    Own = 0,
    /// Rust's standard library and other packages.
    Library = 1,
    Kernel = 2,
    /// C and other languages.
    Native = 3,
    /// No name is known.
    Unknown = 4,
}

/// Crates that come with the compiler.
const STANDARD_CRATES: &[&str] =
    &["std", "core", "alloc", "proc_macro", "test", "std_detect", "panic_unwind"];

/// Parts of source paths outside the program: the compiler's and those of packages.
const LIBRARY_DIRS: &[&str] = &["/rustc/", "rustlib/", "/registry/", "/git/checkouts/", "/vendor/"];

/// Derives the origin from the name's form and the source file.
pub(super) fn of(name: &str, file: &str, is_kernel: bool) -> Origin {
    if is_kernel || file == "kernel" {
        return Origin::Kernel;
    }
    if name.is_empty() || name.starts_with("0x") {
        return Origin::Unknown;
    }
    let is_in_library = LIBRARY_DIRS.iter().any(|dir| file.contains(dir));
    let Some((first, _)) = name.split_once("::") else {
        let is_runtime =
            ["__rust", "__rdl", "__rg", "rust_"].iter().any(|prefix| name.starts_with(prefix));
        return match (is_runtime, file.ends_with(".rs")) {
            (true, _) => Origin::Library,
            // Line tables name inlined functions without their modules.
            (false, true) if is_in_library => Origin::Library,
            (false, true) => Origin::Own,
            (false, false) => Origin::Native,
        };
    };
    if [".c", ".cc", ".cpp", ".h"].iter().any(|ending| file.ends_with(ending)) {
        return Origin::Native;
    }
    // The crate of the type in `<kvant_engine::Db as core::ops::Drop>::drop` or `<&mut a::B as ..`;
    // in `<T as kvant_engine::Merge>::merge`, where `T` names no crate, that of the trait.
    let first = first.rsplit(['<', '&', '*', ' ', '(', '[', '!']).next().unwrap_or(first);
    let is_library = STANDARD_CRATES.contains(&first)
        || is_in_library
        || (file.is_empty() && !first.starts_with("kvant"));
    if is_library { Origin::Library } else { Origin::Own }
}

#[cfg(test)]
mod tests;
