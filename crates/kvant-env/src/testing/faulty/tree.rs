//! The directory tree: directories that map names to files and directories.
//!
//! An operation has two parts: a planning function checks it and returns its [`Change`]s, and
//! [`Tree::apply`] performs them. A crash image applies the surviving changes to another tree.
//!
//! Invariants:
//! 1. The changes of one operation are atomic: all or none are applied.
//! 2. Directory ids are never reused, so that changes of a removed directory cannot affect a new
//!    one with the same name.
//! 3. There is one root. Relative paths also start there; `..` is resolved by name.
//!
//! Threads: the owner's lock guards a tree.

use crate::fs::DirEntry;
use std::collections::{BTreeMap, HashMap};
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

/// Identifies a directory independently of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct DirId(u64);

const ROOT: DirId = DirId(0);

/// The target of a name. `T` is the file system's inode; hard links share it.
pub(super) enum Node<T> {
    File(Arc<T>),
    Dir(DirId),
}

/// A new target for a name.
pub(super) struct Change<T> {
    pub(super) dir: DirId,
    pub(super) name: OsString,
    /// `None` removes the name.
    pub(super) node: Option<Node<T>>,
}

/// The directories of a file system.
pub(super) struct Tree<T> {
    dirs: HashMap<DirId, BTreeMap<OsString, Node<T>>>,
    dir_id_next: u64,
}

impl<T> Tree<T> {
    /// An empty root directory.
    pub(super) fn new() -> Tree<T> {
        Tree { dirs: HashMap::from([(ROOT, BTreeMap::new())]), dir_id_next: 1 }
    }

    /// The inode of the file at `path`.
    pub(super) fn file(&self, path: &Path) -> io::Result<Arc<T>> {
        match self.node(path)? {
            Node::File(inode) => Ok(inode),
            Node::Dir(_) => Err(ErrorKind::IsADirectory.into()),
        }
    }

    /// The directory at `path`.
    pub(super) fn dir(&self, path: &Path) -> io::Result<DirId> {
        match self.node(path)? {
            Node::File(_) => Err(ErrorKind::NotADirectory.into()),
            Node::Dir(dir) => Ok(dir),
        }
    }

    /// The parent directory of `path`.
    pub(super) fn parent_dir(&self, path: &Path) -> io::Result<DirId> {
        self.parent(path).map(|(dir, _)| dir)
    }

    /// Whether `path` exists.
    pub(super) fn exists(&self, path: &Path) -> io::Result<bool> {
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

    /// The target of `name` in `dir`.
    pub(super) fn get(&self, dir: DirId, name: &OsStr) -> Option<&Node<T>> {
        self.dirs.get(&dir)?.get(name)
    }

    /// The files in the directory at `path`, in name order.
    pub(super) fn list(
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

    /// A copy of the directories reachable from the root. `map` is called once per file, regardless
    /// of links, in an order that depends on names only.
    pub(super) fn map_reachable<U>(&self, map: &mut dyn FnMut(&Arc<T>) -> Arc<U>) -> Tree<U> {
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

    /// Every file reachable from the root, in path order.
    pub(super) fn files(&self) -> Vec<(PathBuf, Arc<T>)> {
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

    /// Plans a new name for `inode`; fails if the name exists.
    pub(super) fn plan_insert(&self, path: &Path, inode: Arc<T>) -> io::Result<Vec<Change<T>>> {
        let (dir, name) = self.parent(path)?;
        if self.get(dir, &name).is_some() {
            return Err(ErrorKind::AlreadyExists.into());
        }
        Ok(vec![Change { dir, name, node: Some(Node::File(inode)) }])
    }

    /// Plans the missing directories up to and including `path`, one operation each.
    pub(super) fn plan_create_dir_all(&self, path: &Path) -> io::Result<Vec<Change<T>>> {
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

    /// Plans a rename. A file may replace a file, a directory an empty directory.
    pub(super) fn plan_rename(&self, from: &Path, to: &Path) -> io::Result<Vec<Change<T>>> {
        let (from_dir, from_name) = self.parent(from)?;
        let (to_dir, to_name) = self.parent(to)?;
        let node = self.get(from_dir, &from_name).ok_or(ErrorKind::NotFound)?;
        match (node, self.get(to_dir, &to_name)) {
            // POSIX: renaming one link of a file to another link of it keeps both.
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
    pub(super) fn plan_remove_file(&self, path: &Path) -> io::Result<Vec<Change<T>>> {
        self.file(path)?;
        let (dir, name) = self.parent(path)?;
        Ok(vec![Change { dir, name, node: None }])
    }

    /// Plans the removal of an empty directory.
    pub(super) fn plan_remove_dir(&self, path: &Path) -> io::Result<Vec<Change<T>>> {
        match self.plan_remove_dir_all(path)? {
            changes if changes.len() > 1 => Err(ErrorKind::DirectoryNotEmpty.into()),
            changes => Ok(changes),
        }
    }

    /// Plans the removal of a directory and its contents, one operation per entry, contents first.
    pub(super) fn plan_remove_dir_all(&self, path: &Path) -> io::Result<Vec<Change<T>>> {
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

    /// Sets the target of a name and returns the old one. Changes in a directory that this tree
    /// does not know yet are kept, because a later change may link it.
    pub(super) fn apply(&mut self, change: &Change<T>) -> Option<Node<T>> {
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

    /// The parent directory of `path` and the last name.
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
pub(super) fn absolute(path: &Path) -> PathBuf {
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
