//! Names of an in-memory file system: directories that map names to files and directories.
//!
//! Every operation is split in two: a planning function checks it and returns its [`Change`]s, and
//! [`Tree::apply`] carries them out. A file system that models crashes keeps the changes, and
//! applies to another tree those that survive.
//!
//! Invariants:
//! 1. The changes of one operation belong together: applying only some of them is never right.
//! 2. A directory's id is never used again, so that changes of a removed directory cannot meet a
//!    new one of the same name.
//! 3. There is one root. Paths are taken from it whether they are absolute or relative; `..` is
//!    resolved by name.
//!
//! Threads: none; the owner's lock guards a tree.

use crate::fs::DirEntry;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// A directory, whatever its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct DirId(u64);

const ROOT: DirId = DirId(0);

/// What a name stands for. `T` is what the file system keeps per file (the inode); hard links share
/// it.
pub(crate) enum Node<T> {
    File(Arc<T>),
    Dir(DirId),
}

/// A name's new meaning.
pub(crate) struct Change<T> {
    pub(crate) dir: DirId,
    pub(crate) name: OsString,
    /// `None`: the name is gone.
    pub(crate) node: Option<Node<T>>,
}

/// The names.
pub(crate) struct Tree<T> {
    dirs: HashMap<DirId, BTreeMap<OsString, Node<T>>>,
    dir_id_next: u64,
}

impl<T> Tree<T> {
    /// A root directory without entries.
    pub(crate) fn new() -> Tree<T> {
        Tree { dirs: HashMap::from([(ROOT, BTreeMap::new())]), dir_id_next: 1 }
    }

    /// The inode of the file at `path`.
    pub(crate) fn file(&self, path: &Path) -> io::Result<Arc<T>> {
        match self.node(path)? {
            Node::File(inode) => Ok(inode),
            Node::Dir(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }

    /// The directory at `path`.
    pub(crate) fn dir(&self, path: &Path) -> io::Result<DirId> {
        match self.node(path)? {
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
            Node::Dir(dir) => Ok(dir),
        }
    }

    /// The directory that holds the last name of `path`.
    pub(crate) fn parent_dir(&self, path: &Path) -> io::Result<DirId> {
        self.parent(path).map(|(dir, _)| dir)
    }

    /// Whether `path` names anything.
    pub(crate) fn exists(&self, path: &Path) -> io::Result<bool> {
        match self.node(path) {
            Ok(_) => Ok(true),
            Err(error)
                if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) =>
            {
                Ok(false)
            }
            Err(error) => Err(error),
        }
    }

    /// What `name` in `dir` stands for.
    pub(crate) fn get(&self, dir: DirId, name: &OsStr) -> Option<&Node<T>> {
        self.dirs.get(&dir)?.get(name)
    }

    /// The files in the directory at `path`, in name order, with their lengths as `len_bytes` tells
    /// them.
    pub(crate) fn list(
        &self,
        path: &Path,
        len_bytes: impl Fn(&T) -> u64,
    ) -> io::Result<Vec<DirEntry>> {
        let dir = self.dir(path)?;
        let files = self.dirs[&dir].iter().filter_map(|(name, node)| match node {
            Node::File(inode) => {
                Some(DirEntry { name: name.to_str()?.to_owned(), len_bytes: len_bytes(inode) })
            }
            Node::Dir(_) => None,
        });
        Ok(files.collect())
    }

    /// The directories that the root leads to, with each file made anew by `map`: once for each
    /// file, however many links it has, and in an order that depends on names only.
    pub(crate) fn map_reachable<U>(&self, map: &mut dyn FnMut(&Arc<T>) -> Arc<U>) -> Tree<U> {
        let mut mapped = Tree { dirs: HashMap::new(), dir_id_next: self.dir_id_next };
        let mut seen: HashMap<*const T, Arc<U>> = HashMap::new();
        let mut to_visit = vec![ROOT];
        while let Some(dir) = to_visit.pop() {
            let entries = self.dirs[&dir].iter().map(|(name, node)| {
                let node = match node {
                    Node::File(inode) => Node::File(Arc::clone(
                        seen.entry(Arc::as_ptr(inode)).or_insert_with(|| map(inode)),
                    )),
                    Node::Dir(child) => {
                        to_visit.push(*child);
                        Node::Dir(*child)
                    }
                };
                (name.clone(), node)
            });
            let entries = entries.collect();
            mapped.dirs.insert(dir, entries);
        }
        mapped
    }

    /// Every file that the root leads to, in path order.
    pub(crate) fn files(&self) -> Vec<(PathBuf, Arc<T>)> {
        let mut files = Vec::new();
        self.collect_files(ROOT, Path::new("/"), &mut files);
        files.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
        files
    }

    fn collect_files(&self, dir: DirId, path: &Path, files: &mut Vec<(PathBuf, Arc<T>)>) {
        for (name, node) in &self.dirs[&dir] {
            match node {
                Node::File(inode) => files.push((path.join(name), Arc::clone(inode))),
                Node::Dir(child) => self.collect_files(*child, &path.join(name), files),
            }
        }
    }

    /// Plans a new name for `inode`; fails if the name is taken.
    pub(crate) fn plan_insert(&self, path: &Path, inode: Arc<T>) -> io::Result<Vec<Change<T>>> {
        let (dir, name) = self.parent(path)?;
        if self.get(dir, &name).is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Ok(vec![Change { dir, name, node: Some(Node::File(inode)) }])
    }

    /// Plans the missing directories up to and including `path`: one operation for each.
    pub(crate) fn plan_create_dir_all(&self, path: &Path) -> io::Result<Vec<Change<T>>> {
        let mut changes = Vec::new();
        let mut dir = ROOT;
        let mut dir_id_next = self.dir_id_next;
        for name in components(path) {
            dir = match self.get(dir, &name) {
                Some(Node::Dir(child)) => *child,
                Some(Node::File(_)) => return Err(ErrorKind::NotADirectory.into()),
                None => {
                    let child = DirId(dir_id_next);
                    dir_id_next += 1;
                    changes.push(Change { dir, name, node: Some(Node::Dir(child)) });
                    child
                }
            };
        }
        Ok(changes)
    }

    /// Plans a rename of a file over a file or nothing, or of a directory over an empty directory
    /// or nothing.
    pub(crate) fn plan_rename(&self, from: &Path, to: &Path) -> io::Result<Vec<Change<T>>> {
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        let node = self.get(from_dir, &from_name).ok_or(ErrorKind::NotFound)?;
        match (node, self.get(to_dir, &to_name)) {
            // As POSIX has it: renaming one link of a file over another of the same file leaves
            // both.
            (Node::File(old), Some(Node::File(new))) if Arc::ptr_eq(old, new) => {
                return Ok(Vec::new());
            }
            (Node::Dir(old), Some(Node::Dir(new))) if old == new => return Ok(Vec::new()),
            (Node::File(_), Some(Node::Dir(_))) => return Err(ErrorKind::IsADirectory.into()),
            (Node::Dir(_), Some(Node::File(_))) => return Err(ErrorKind::NotADirectory.into()),
            (Node::Dir(_), Some(Node::Dir(new))) if !self.dirs[new].is_empty() => {
                return Err(ErrorKind::DirectoryNotEmpty.into());
            }
            (Node::Dir(_), _) if starts_with(to, from) => {
                return Err(ErrorKind::InvalidInput.into());
            }
            _ => {}
        }
        Ok(vec![
            Change { dir: from_dir, name: from_name, node: None },
            Change { dir: to_dir, name: to_name, node: Some(node.clone()) },
        ])
    }

    /// Plans the removal of a file's name.
    pub(crate) fn plan_remove_file(&self, path: &Path) -> io::Result<Vec<Change<T>>> {
        self.file(path)?;
        let (dir, name) = self.parent(path)?;
        Ok(vec![Change { dir, name, node: None }])
    }

    /// Plans the removal of a directory: one operation for each entry below it, contents before
    /// container.
    pub(crate) fn plan_remove_dir_all(&self, path: &Path) -> io::Result<Vec<Change<T>>> {
        let (dir, name) = self.parent(path)?;
        let mut changes = Vec::new();
        self.plan_empty(self.dir(path)?, &mut changes);
        changes.push(Change { dir, name, node: None });
        Ok(changes)
    }

    fn plan_empty(&self, dir: DirId, changes: &mut Vec<Change<T>>) {
        for (name, node) in &self.dirs[&dir] {
            if let Node::Dir(child) = node {
                self.plan_empty(*child, changes);
            }
            changes.push(Change { dir, name: name.clone(), node: None });
        }
    }

    /// Gives a name its new meaning and returns the old one. A change of a directory that this tree
    /// does not know yet is kept: the root may come to lead to it.
    pub(crate) fn apply(&mut self, change: &Change<T>) -> Option<Node<T>> {
        if let Some(Node::Dir(child)) = &change.node {
            self.dirs.entry(*child).or_default();
            self.dir_id_next = self.dir_id_next.max(child.0 + 1);
        }
        let entries = self.dirs.entry(change.dir).or_default();
        match &change.node {
            Some(node) => entries.insert(change.name.clone(), node.clone()),
            None => entries.remove(&change.name),
        }
    }

    fn node(&self, path: &Path) -> io::Result<Node<T>> {
        let mut node = Node::Dir(ROOT);
        for name in components(path) {
            node = match node {
                Node::File(_) => return Err(ErrorKind::NotADirectory.into()),
                Node::Dir(dir) => self.get(dir, &name).ok_or(ErrorKind::NotFound)?.clone(),
            };
        }
        Ok(node)
    }

    /// The directory that holds the last name of `path`, and that name.
    fn parent(&self, path: &Path) -> io::Result<(DirId, OsString)> {
        let mut names = components(path);
        let name = names.pop().ok_or(ErrorKind::InvalidInput)?;
        Ok((self.dir(&names.iter().collect::<PathBuf>())?, name))
    }
}

impl<T> Clone for Tree<T> {
    fn clone(&self) -> Self {
        Tree { dirs: self.dirs.clone(), dir_id_next: self.dir_id_next }
    }
}

impl<T> Clone for Node<T> {
    fn clone(&self) -> Self {
        match self {
            Node::File(inode) => Node::File(Arc::clone(inode)),
            Node::Dir(dir) => Node::Dir(*dir),
        }
    }
}

/// `path` from the root, without `..`.
pub(crate) fn absolute(path: &Path) -> PathBuf {
    Path::new("/").join(components(path).iter().collect::<PathBuf>())
}

/// The names from the root to `path`.
fn components(path: &Path) -> Vec<OsString> {
    let mut names = Vec::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => names.push(name.to_owned()),
            Component::ParentDir => drop(names.pop()),
            Component::Prefix(_) | Component::RootDir | Component::CurDir => {}
        }
    }
    names
}

fn starts_with(path: &Path, prefix: &Path) -> bool {
    components(path).starts_with(&components(prefix))
}
