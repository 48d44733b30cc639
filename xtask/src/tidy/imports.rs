//! What the files of a crate import from each other.
//!
//! A file imports from another if one of its paths leads to an item of that file. Names are
//! followed through `use` lines, re-exports included, to the file that defines the item. `mod
//! child;`, the `use` of a module, and a re-export of a name that the file does not use itself
//! import nothing. Only product code counts.

use super::paths::{self, FilePaths};
use super::tree::{File, Tree};
use std::collections::BTreeMap;

/// The product files of one crate, with the imports between them.
pub(super) struct CrateImports<'a> {
    /// As its directory is called.
    pub(super) name: &'a str,
    pub(super) files: Vec<&'a File>,
    pub(super) imports: Vec<Import>,
}

/// One path of a file that leads to an item of another file.
pub(super) struct Import {
    /// Positions in [`CrateImports::files`].
    pub(super) from: usize,
    pub(super) to: usize,
    /// The item's path, with `crate` as its first word.
    pub(super) words: Vec<String>,
    /// From 1.
    pub(super) line: usize,
}

/// A longer chain of imports is a cycle of names.
const CHAIN_MAX: usize = 8;

impl<'a> CrateImports<'a> {
    /// Reads each crate of the product, and the tool itself.
    pub(super) fn of_all(tree: &'a Tree) -> Vec<CrateImports<'a>> {
        let mut crates: BTreeMap<&str, Vec<&File>> = BTreeMap::new();
        for file in tree.rust().filter(|file| !file.is_test) {
            if let Some((name, _)) = file.crate_and_module() {
                crates.entry(name).or_default().push(file);
            }
        }
        crates.into_iter().map(|(name, files)| CrateImports::of(name, files)).collect()
    }

    fn of(name: &'a str, files: Vec<&'a File>) -> CrateImports<'a> {
        let read: Vec<FilePaths> =
            files.iter().map(|file| paths::of(&file.path, &file.tokens)).collect();
        let modules: BTreeMap<Vec<String>, usize> =
            read.iter().enumerate().map(|(index, read)| (read.module.clone(), index)).collect();
        let names = Names { read: &read, modules: &modules };
        let mut imports = Vec::new();
        for (from, file) in read.iter().enumerate() {
            for (path, line) in &file.paths {
                if let Some((to, words)) = names.definition(from, path, 0)
                    && to != from
                {
                    imports.push(Import { from, to, words, line: *line });
                }
            }
        }
        CrateImports { name, files, imports }
    }

    /// The top-level module of a file; `lib` or `main` for the root.
    pub(super) fn top_module(&self, file: usize) -> &'a str {
        let (_, inside) = self.files[file].crate_and_module().expect("only such files are read");
        let first = inside.split('/').next().unwrap_or(inside);
        first.strip_suffix(".rs").unwrap_or(first)
    }

    pub(super) fn is_root(&self, file: usize) -> bool {
        matches!(self.top_module(file), "lib" | "main")
    }
}

/// The modules of a crate, and the names that each of its files imports.
struct Names<'a> {
    read: &'a [FilePaths],
    modules: &'a BTreeMap<Vec<String>, usize>,
}

impl Names<'_> {
    /// The file that defines the item that `from` calls `words`, and the item's path. `None` if
    /// it is a module or of another crate.
    ///
    /// This is no full name resolution: it follows imports by name, but not globs.
    fn definition(
        &self,
        from: usize,
        words: &[String],
        depth: usize,
    ) -> Option<(usize, Vec<String>)> {
        if depth > CHAIN_MAX {
            return None;
        }
        let FilePaths { module, imports, .. } = &self.read[from];
        let up = words.iter().take_while(|word| *word == "super").count();
        let inside = match words[0].as_str() {
            "crate" => words[1..].to_vec(),
            "self" => [module, &words[1..]].concat(),
            "super" => [&module[..module.len().checked_sub(up)?], &words[up..]].concat(),
            first => match imports.get(first) {
                Some(target) if target[0] != first => {
                    let target = [target, &words[1..]].concat();
                    return self.definition(from, &target, depth + 1);
                }
                _ if self.is_module(&[&module[..], &words[..1]].concat()) => {
                    [&module[..], words].concat()
                }
                _ => return None,
            },
        };
        let prefix = (0..=inside.len()).rev().find(|len| self.is_module(&inside[..*len]))?;
        let (to, item) = (self.modules[&inside[..prefix]], inside.get(prefix)?);
        if to != from && self.read[to].imports.contains_key(item) {
            return self.definition(to, &inside[prefix..], depth + 1);
        }
        Some((to, [&["crate".to_owned()], &inside[..]].concat()))
    }

    fn is_module(&self, words: &[String]) -> bool {
        self.modules.contains_key(words)
    }
}

#[cfg(test)]
mod tests;
