//! A directory that is being written, beside its place: `TO.unfinished`, with the file `source`,
//! which names where the records come from, and the directory `data`.

use kvant_base::{Error, ErrorKind, Result};
use kvant_env::fs::parent_of;
use kvant_env::{Env, host};
use std::io;
use std::path::{Path, PathBuf};

pub(super) struct Unfinished<'a> {
    env: &'a Env,
    dir: PathBuf,
    to: PathBuf,
    is_resumed: bool,
}

impl Unfinished<'_> {
    /// Begins a copy of `source` to `to`, which must not exist or be empty; or goes on with it.
    pub(super) fn open<'a>(env: &'a Env, to: &Path, source: &str) -> Result<Unfinished<'a>> {
        require_empty(env, to)?;
        let dir = beside(to)?;
        let mut unfinished = Unfinished { env, dir, to: to.to_path_buf(), is_resumed: false };
        let path = unfinished.dir.join("source");
        match env.fs.read(&path) {
            Ok(found) if found == source.as_bytes() => unfinished.is_resumed = true,
            Ok(found) => {
                let what = format!(
                    "it is an unfinished copy of {}: finish that copy, or remove the directory",
                    String::from_utf8_lossy(&found)
                );
                return Err(Error::invalid(what).with_file(&unfinished.dir));
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                unfinished.require_ours()?;
                unfinished.remove()?;
                unfinished.name_source(&path, source)?;
            }
            Err(error) => return Err(Error::io("read", &path, error)),
        }
        if let Err(error) = unfinished.require_replaceable() {
            if !unfinished.is_resumed {
                unfinished.remove()?;
            }
            return Err(error);
        }
        Ok(unfinished)
    }

    /// Refuses a directory without `source` that holds what no copy leaves in one.
    fn require_ours(&self) -> Result<()> {
        let names = match host::names_in(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            listed => listed.map_err(|error| Error::io("list", &self.dir, error))?,
        };
        if names.iter().all(|name| name == "source.new" || name == "empty") {
            return Ok(());
        }
        let what = "the copy would be made here, but it is no unfinished copy: move it away";
        Err(Error::invalid(what).with_file(&self.dir))
    }

    /// Puts a new directory in the place of an existing one. Where the system refuses that, as for
    /// a mount point, it would refuse the whole copy at its end.
    fn require_replaceable(&self) -> Result<()> {
        let (fs, empty) = (&*self.env.fs, self.dir.join("empty"));
        // A symbolic link without a target has a name, but does not exist to a look at its path.
        let parent = parent_of(&self.to);
        let names = host::names_in(parent).map_err(|error| Error::io("list", parent, error))?;
        if !names.iter().any(|name| Some(name.as_os_str()) == self.to.file_name()) {
            return Ok(());
        }
        fs.create_dir_all(&empty).map_err(|error| Error::io("create", &empty, error))?;
        fs.rename(&empty, &self.to).map_err(|error| Error::io("replace", &self.to, error))
    }

    /// The directory appears with its whole file: an attempt that ends before leaves none.
    fn name_source(&self, path: &Path, source: &str) -> Result<()> {
        let fs = &*self.env.fs;
        fs.create_dir_all(&self.dir).map_err(|error| Error::io("create", &self.dir, error))?;
        let new = path.with_extension("new");
        let named = fs.create(&new).and_then(|file| {
            file.write_all_at(source.as_bytes(), 0)?;
            file.sync_data()?;
            fs.rename(&new, path)?;
            fs.sync_dir(&self.dir)
        });
        named.map_err(|error| Error::io("write", path, error))
    }

    pub(super) fn is_resumed(&self) -> bool {
        self.is_resumed
    }

    /// Adds what to do to the error of a comparison with the source.
    pub(super) fn advise(&self, error: Error) -> Error {
        // Differences are in no file, and damage is.
        let is_difference = error.kind() == ErrorKind::Corruption && error.file().is_none();
        if !self.is_resumed || !is_difference {
            return error;
        }
        let what = format!(
            "{error}; the source may have changed since an earlier attempt: remove {} and copy \
             again",
            self.dir.display()
        );
        Error::new(error.kind(), what)
    }

    /// Where the records are written.
    pub(super) fn data(&self) -> PathBuf {
        self.dir.join("data")
    }

    /// Gives the directory, which is complete and closed, its final name.
    pub(super) fn put_in_place(self) -> Result<()> {
        let (fs, data) = (&*self.env.fs, self.data());
        fs.rename(&data, &self.to).map_err(|error| Error::io("rename", &data, error))?;
        let parent = parent_of(&self.to);
        fs.sync_dir(parent).map_err(|error| Error::io("fsync", parent, error))?;
        self.remove()
    }

    fn remove(&self) -> Result<()> {
        match self.env.fs.remove_dir_all(&self.dir) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            removed => removed.map_err(|error| Error::io("remove", &self.dir, error)),
        }
    }
}

fn require_empty(env: &Env, dir: &Path) -> Result<()> {
    match env.fs.list(dir) {
        Ok(entries) if entries.is_empty() => Ok(()),
        Ok(_) => Err(Error::invalid("the directory of the copy is not empty").with_file(dir)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(Error::io("list", dir, error)),
    }
}

fn beside(to: &Path) -> Result<PathBuf> {
    let name = to.file_name();
    let name = name.ok_or_else(|| Error::invalid("the path ends with no name").with_file(to))?;
    let mut name = name.to_os_string();
    name.push(".unfinished");
    Ok(to.with_file_name(name))
}
