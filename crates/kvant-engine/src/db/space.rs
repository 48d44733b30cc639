//! A full disk: puts are refused, deletes and background work go on with space kept for them, and all heals when space returns.
//!
//! The file `RESERVE` holds space that is given back to the file system when it is full. While the reserve is missing, puts are
//! refused; whether it can be made again, with room to spare, is the test for "space has returned". It is tried by puts, at most
//! once a [`PROBE_INTERVAL_NS`], so nothing polls an idle database.

use crate::format::{FileKind, FileNum, file_path};
use kvant_base::lock::NamedMutex;
use kvant_base::log::{Level, Log};
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::{Env, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const PROBE_INTERVAL_NS: u64 = 200_000_000;

pub(crate) struct DiskSpace {
    env: Env,
    log: Arc<dyn Log>,
    dir: PathBuf,
    reserve_path: PathBuf,
    reserve_bytes: u64,
    /// Fast path of [`DiskSpace::admit_put`].
    full: AtomicBool,
    state: NamedMutex<State>,
}

struct State {
    reserve: Option<Arc<dyn File>>,
    probed_ns: u64,
}

/// Gives back what the last owner kept: a database on a full disk needs it to open, and makes it anew when it can.
pub(crate) fn release_at_open(env: &Env, dir: &Path) -> Result<()> {
    let path = file_path(dir, FileKind::Reserve, FileNum(0));
    if env.fs.exists(&path).map_err(|e| Error::io("look at", &path, e))? {
        env.fs
            .remove_file(&path)
            .map_err(|e| Error::io("remove", &path, e))?;
    }
    Ok(())
}

impl DiskSpace {
    pub(crate) fn new(env: Env, log: Arc<dyn Log>, dir: &Path, reserve_bytes: u64) -> DiskSpace {
        DiskSpace {
            reserve_path: file_path(dir, FileKind::Reserve, FileNum(0)),
            dir: dir.to_path_buf(),
            env,
            log,
            reserve_bytes,
            full: AtomicBool::new(false),
            state: NamedMutex::new(
                "disk_space",
                State {
                    reserve: None,
                    probed_ns: 0,
                },
            ),
        }
    }

    /// Makes the reserve; without room for it the database starts as full.
    pub(crate) fn open(&self) {
        let mut state = self.state.lock();
        if !self.make_reserve(&mut state) {
            drop(state);
            self.note_full();
        }
    }

    /// Whether puts are refused now.
    pub(crate) fn is_full(&self) -> bool {
        self.full.load(Ordering::Relaxed)
    }

    /// Lets a put pass, unless the disk is full and has not healed.
    #[inline]
    pub(crate) fn admit_put(&self) -> Result<()> {
        if self.is_full() && !self.probe() {
            return Err(Error::new(
                ErrorKind::NoSpace,
                "no space left on the device: free some; reads and deletes go on",
            )
            .with_file(&self.dir));
        }
        Ok(())
    }

    /// The device has no space left.
    pub(crate) fn note_full(&self) {
        if !self.full.swap(true, Ordering::Relaxed) {
            self.state.lock().probed_ns = self.env.clock.monotonic_ns();
            self.log
                .event(Level::Error, "disk_full", &[("dir", &self.dir.display())]);
        }
    }

    /// Gives the reserve back to the file system; false when that was done before.
    pub(crate) fn release_reserve(&self) -> Result<bool> {
        let mut state = self.state.lock();
        let Some(reserve) = state.reserve.take() else {
            return Ok(false);
        };
        drop(reserve);
        let removed = self.env.fs.remove_file(&self.reserve_path);
        removed.map_err(|source| Error::io("remove", &self.reserve_path, source))?;
        self.log.event(
            Level::Warn,
            "disk_reserve_released",
            &[("bytes", &self.reserve_bytes)],
        );
        Ok(true)
    }

    /// Whether space has returned.
    pub(crate) fn probe(&self) -> bool {
        let mut state = self.state.lock();
        let now_ns = self.env.clock.monotonic_ns();
        if now_ns < state.probed_ns + PROBE_INTERVAL_NS {
            return false;
        }
        state.probed_ns = now_ns;
        let healed = self.make_reserve(&mut state) && self.has_room();
        if healed {
            self.full.store(false, Ordering::Relaxed);
            self.log.event(Level::Info, "disk_space_returned", &[]);
        }
        healed
    }

    /// Room for as much again as the reserve, so that "healed" lasts longer than one write.
    fn has_room(&self) -> bool {
        self.env
            .fs
            .available_bytes(&self.dir)
            .is_ok_and(|bytes| bytes >= self.reserve_bytes)
    }

    fn make_reserve(&self, state: &mut State) -> bool {
        if state.reserve.is_some() {
            return true;
        }
        let made = self.env.fs.create(&self.reserve_path).and_then(|file| {
            file.allocate(self.reserve_bytes)?;
            Ok(file)
        });
        match made {
            Ok(file) => {
                state.reserve = Some(file);
                true
            }
            Err(error) => {
                // A part of the reserve would only take space from those it is meant for.
                if let Err(error) = self.env.fs.remove_file(&self.reserve_path) {
                    self.log
                        .event(Level::Warn, "disk_reserve_not_removed", &[("error", &error)]);
                }
                self.log
                    .event(Level::Warn, "disk_reserve_not_made", &[("error", &error)]);
                false
            }
        }
    }
}
