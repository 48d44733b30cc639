//! The subject that runs now, with the data that a case needs.
//!
//! Invariants:
//! 1. At most one subject that we started runs at a time: an idle one would still take memory and
//!    wake up.
//! 2. A case begins on a store as the fill left it, or on an empty one if the plan has no data: a
//!    store that an attempt has changed is restored before the next attempt. Nothing removes what
//!    else is in a store elsewhere ([`Subject::elsewhere`]).
//! 3. A restored store is on the disk before its subject starts: nothing of the copy is written
//!    while a load is measured.
//! 4. Data that expire are stored again before they are older than half of their time.
//! 5. A store in a directory is filled once and copied; one elsewhere is filled again once it was
//!    changed; others, such as those in memory, are filled again after each start.

use super::context::{Context, Problem, file_name};
use super::data::{self, Filled, Fingerprints};
use super::progress::Progress;
use super::subject::{self, Running};
use super::watch::Used;
use super::{cleanup, tree, watch};
use crate::plan::{Plan, Resolved, STORE_OPTIONS, Subject, SubjectKind};
use crate::record::SIDES;
use kvant_base::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

/// A subject is idle if it uses no more CPU time than this in the window, one tick of the kernel's
/// account, and writes no more than this.
const IDLE_CPU: Duration = Duration::from_millis(10);
const IDLE_WRITTEN_BYTES: u64 = 64 << 10;
const IDLE_WINDOW: Duration = Duration::from_millis(300);
/// A subject that never rests, such as one that polls, is measured as it is.
const IDLE_WAIT_MAX: Duration = Duration::from_secs(30);

/// The running subject, and the checkpoints of all.
pub(super) struct Stage {
    current: Option<Current>,
    /// By [`store_owner`] and data.
    checkpoints: BTreeMap<String, PathBuf>,
    /// When data were stored that expire, likewise.
    stored_at: BTreeMap<String, Instant>,
    /// Directories of checkpoints that were made.
    checkpoint_count: usize,
    fingerprints: Fingerprints,
    /// Different data where they should be equal, in words, since that was last noted.
    pub(super) mismatches: Vec<String>,
    /// Subjects whose preparing commands have been run.
    prepared: BTreeSet<String>,
    /// By [`place`]: the data that the store has, unchanged since they were stored.
    stored: BTreeMap<String, String>,
    /// What was learned, by subject.
    pub(super) filled: BTreeMap<String, Filled>,
    pub(super) software: BTreeMap<String, String>,
    /// How often a subject had to be killed since that was last noted.
    pub(super) killed: BTreeMap<String, u32>,
}

struct Current {
    /// Subject, options and data.
    key: String,
    name: String,
    place: String,
    running: Running,
    is_changed: bool,
    /// Whether it came to rest after its start.
    is_at_rest: bool,
}

impl Stage {
    pub(super) fn new() -> Stage {
        Stage {
            current: None,
            checkpoints: BTreeMap::new(),
            stored_at: BTreeMap::new(),
            checkpoint_count: 0,
            fingerprints: Fingerprints::default(),
            mismatches: Vec::new(),
            prepared: BTreeSet::new(),
            stored: BTreeMap::new(),
            filled: BTreeMap::new(),
            software: BTreeMap::new(),
            killed: BTreeMap::new(),
        }
    }

    /// Makes the subject of a case ready, with its data, and idle.
    ///
    /// # Errors
    /// [`Problem`].
    pub(super) fn make_ready(
        &mut self,
        context: &Context<'_>,
        resolved: &Resolved,
        progress: &mut Progress,
    ) -> std::result::Result<(), Problem> {
        let store = store_key(resolved);
        let key = format!("{} {:?} {store}", resolved.subject.name, resolved.subject.kind);
        self.drop_expiring(context.plan, resolved, &store)?;
        let is_ready = |current: &Current| {
            current.key == key && !current.is_changed && current.running.end().is_none()
        };
        if self.current.as_ref().is_some_and(is_ready) {
            return Ok(());
        }
        self.stop(progress)?;
        let subject = &resolved.subject;
        if !self.prepared.contains(&subject.name) {
            progress.now(&format!("{}: prepares", subject.name));
            subject::prepare(context, subject)?;
            self.prepared.insert(subject.name.clone());
        }
        let dir = context.scratch.join(file_name(&subject.name));
        let data_dir = dir.join("data");
        let fills = resolved.data.is_some() && !subject.has_fixed_response;
        let place = place(subject);
        let is_copied = fills && is_in_directory(subject);
        if is_copied {
            let checkpoint = self.checkpoint(context, resolved, &dir, &store, progress)?;
            if self.stored.get(&place) != Some(&store) {
                progress.now(&format!("{}: restores its data", subject.name));
                remove(&data_dir)?;
                // They would keep the tables of the former store.
                remove(&dir.join("checkpoints"))?;
                tree::copy(&checkpoint, &data_dir)?;
                sync(&data_dir)?;
                self.stored.insert(place.clone(), store.clone());
            }
        } else {
            // A later case would take the directory for the filled store that was in it.
            self.stored.remove(&subject.name);
            empty(&data_dir)?;
        }
        progress.now(&format!("{}: starts", subject.name));
        let running = Running::start(context, subject, &data_dir)?;
        self.note_software(subject, &running);
        if let Some(planned) = resolved.data.as_ref().filter(|_| fills && !is_copied)
            && self.stored.get(&place) != Some(&store)
        {
            // A fill that fails leaves a part of both.
            self.stored.remove(&place);
            let filled = data::fill(context, subject, &running, planned, progress)?;
            self.note_stored(context.plan, resolved, &running, &filled, progress);
            self.note_filled(subject, filled, progress, "");
            self.stored.insert(place.clone(), store);
        }
        // One that stores nothing has no work to finish, and may poll all the time.
        let is_at_rest =
            subject.has_fixed_response || wait_until_idle(context, subject, &running, progress);
        let name = subject.name.clone();
        self.current = Some(Current { key, name, place, running, is_changed: false, is_at_rest });
        Ok(())
    }

    /// What limits the trust in what the running subject does.
    pub(super) fn note(&self) -> Option<String> {
        let is_busy = self.current.as_ref().is_some_and(|current| !current.is_at_rest);
        is_busy.then(|| {
            format!("the subject did not come to rest within {IDLE_WAIT_MAX:?} after its start")
        })
    }

    /// The subject that [`Stage::make_ready`] started last.
    pub(super) fn running(&self) -> Option<&Running> {
        self.current.as_ref().map(|current| &current.running)
    }

    /// Notes that an attempt changed the store.
    pub(super) fn mark_changed(&mut self) {
        if let Some(current) = &mut self.current {
            current.is_changed = true;
            self.stored.remove(&current.place);
        }
    }

    /// Stops the running subject.
    ///
    /// # Errors
    /// `Io` if it cannot be signalled.
    pub(super) fn stop(&mut self, progress: &mut Progress) -> Result<()> {
        match self.current.take() {
            Some(current) => self.stop_running(current.running, &current.name, progress),
            None => Ok(()),
        }
    }

    fn stop_running(
        &mut self,
        running: Running,
        name: &str,
        progress: &mut Progress,
    ) -> Result<()> {
        if running.stop()? {
            progress.line(&format!("{name}: did not end after SIGTERM and was killed"));
            *self.killed.entry(name.to_owned()).or_default() += 1;
        }
        Ok(())
    }

    /// The filled store of a subject; fills it if there is none.
    fn checkpoint(
        &mut self,
        context: &Context<'_>,
        resolved: &Resolved,
        dir: &Path,
        store: &str,
        progress: &mut Progress,
    ) -> std::result::Result<PathBuf, Problem> {
        let subject = &resolved.subject;
        let key = format!("{} {store}", store_owner(context.plan, subject));
        if let Some(path) = self.checkpoints.get(&key) {
            return Ok(path.clone());
        }
        let Some(planned) = &resolved.data else {
            return Err(Error::invalid("the case has no data").into());
        };
        let (data_dir, checkpoint) =
            (dir.join("data"), dir.join(format!("filled-{}", self.checkpoint_count)));
        self.checkpoint_count += 1;
        self.stored.remove(&subject.name);
        empty(&data_dir)?;
        progress.now(&format!("{}: starts, to store the data", subject.name));
        let running = Running::start(context, subject, &data_dir)?;
        self.note_software(subject, &running);
        let filled = data::fill(context, subject, &running, planned, progress)?;
        // Stopped in any case: the next start waits again.
        wait_until_idle(context, subject, &running, progress);
        self.note_stored(context.plan, resolved, &running, &filled, progress);
        self.stop_running(running, &subject.name, progress)?;
        remove(&checkpoint)?;
        // The first copy says how copies are made here.
        fs::rename(&data_dir, &checkpoint)
            .map_err(|error| Error::io("rename", &data_dir, error))?;
        let how = tree::copy(&checkpoint, &data_dir)?;
        sync(&data_dir)?;
        self.note_filled(subject, filled, progress, &format!(", copied {}", how.words()));
        self.stored.insert(subject.name.clone(), store.to_owned());
        self.checkpoints.insert(key, checkpoint.clone());
        Ok(checkpoint)
    }

    /// Forgets all data and their copies: they are stored again. No subject may run.
    ///
    /// # Errors
    /// `Io` if a copy cannot be removed.
    pub(super) fn forget_data(&mut self) -> Result<()> {
        self.stored.clear();
        self.stored_at.clear();
        let checkpoints = std::mem::take(&mut self.checkpoints);
        checkpoints.values().try_for_each(|checkpoint| remove(checkpoint))
    }

    /// Forgets data of a case that would soon expire, with their copy.
    fn drop_expiring(&mut self, plan: &Plan, resolved: &Resolved, store: &str) -> Result<()> {
        let Some(ttl_s) = resolved.data.as_ref().and_then(|data| data.ttl_s) else {
            return Ok(());
        };
        let owner = store_owner(plan, &resolved.subject);
        let key = format!("{owner} {store}");
        let age = self.stored_at.get(&key).map(Instant::elapsed);
        if age.is_none_or(|age| age < Duration::from_secs(ttl_s) / 2) {
            return Ok(());
        }
        self.stored_at.remove(&key);
        // Both sides of a comparison may have copies of them.
        let owners = plan.subjects.iter().filter(|subject| store_owner(plan, subject) == owner);
        for place in owners.chain([&resolved.subject]).map(place) {
            self.stored.remove(&place);
            if let Some(current) = self.current.as_mut().filter(|current| current.place == place) {
                current.is_changed = true;
            }
        }
        match self.checkpoints.remove(&key) {
            Some(checkpoint) => remove(&checkpoint),
            None => Ok(()),
        }
    }

    fn note_stored(
        &mut self,
        plan: &Plan,
        resolved: &Resolved,
        running: &Running,
        filled: &Filled,
        progress: &mut Progress,
    ) {
        let name = &resolved.subject.name;
        if resolved.data.as_ref().is_some_and(|data| data.ttl_s.is_some()) {
            let owner = store_owner(plan, &resolved.subject);
            self.stored_at.insert(format!("{owner} {}", store_key(resolved)), filled.start);
        }
        if !running.is_kvant {
            return;
        }
        let data = format!("{:?}", resolved.data);
        if let Some(mismatch) = self.fingerprints.add(&data, name, &filled.fingerprint) {
            progress.line(&format!("the data differ: {mismatch}"));
            self.mismatches.push(mismatch);
        }
    }

    fn note_filled(
        &mut self,
        subject: &Subject,
        filled: Filled,
        progress: &mut Progress,
        copied: &str,
    ) {
        if self.filled.contains_key(&subject.name) {
            return;
        }
        progress.line(&format!(
            "{}: data stored in {:.1} s, fingerprint {}{copied}",
            subject.name,
            filled.time.as_secs_f64(),
            filled.fingerprint
        ));
        self.filled.insert(subject.name.clone(), filled);
    }

    fn note_software(&mut self, subject: &Subject, running: &Running) {
        if let Some(software) = &running.software {
            self.software.insert(subject.name.clone(), software.clone());
        }
    }
}

/// Whose filled store a subject begins on.
fn store_owner(plan: &Plan, subject: &Subject) -> String {
    if plan.shares_stores() { SIDES.concat() } else { place(subject) }
}

/// Where a subject's store is: subjects with a store elsewhere may share it.
fn place(subject: &Subject) -> String {
    subject.elsewhere().unwrap_or_else(|| subject.name.clone())
}

/// What a case finds stored.
fn store_key(resolved: &Resolved) -> String {
    let options = match &resolved.subject.kind {
        SubjectKind::Kvant { options, .. } => options
            .iter()
            .filter(|(name, _)| STORE_OPTIONS.contains(&name.as_str()))
            .map(|(name, value)| format!("{name}={value} "))
            .collect(),
        SubjectKind::Command { .. } | SubjectKind::Url(_) => String::new(),
    };
    format!("{options}{:?}", resolved.data)
}

/// Whether the store is in the subject's directory, and so survives its process and can be copied.
fn is_in_directory(subject: &Subject) -> bool {
    match &subject.kind {
        SubjectKind::Kvant { options, .. } => {
            let is_memory =
                |(name, value): &(String, String)| name == "engine" && value == "memory";
            subject.elsewhere().is_none() && !options.iter().any(is_memory)
        }
        SubjectKind::Command { command, .. } => command.iter().any(|word| word.contains("{data}")),
        SubjectKind::Url(_) => false,
    }
}

/// Waits until a subject has done what it deferred, and returns whether it has, as far as is known.
pub(super) fn wait_until_idle(
    context: &Context<'_>,
    subject: &Subject,
    running: &Running,
    progress: &mut Progress,
) -> bool {
    let until = Instant::now() + IDLE_WAIT_MAX;
    let used = || watch::used(&context.options.proc, &running.watched);
    progress.now(&format!("{}: comes to rest", subject.name));
    comes_to_rest(used, || {
        let goes_on =
            Instant::now() < until && !context.stop.is_requested() && running.end().is_none();
        if goes_on {
            context.stop.pause(IDLE_WINDOW);
        }
        goes_on
    })
}

/// Whether a use, if it is known, hardly grows during a wait before `waits` ends the waits.
fn comes_to_rest(used: impl Fn() -> Option<Used>, mut waits: impl FnMut() -> bool) -> bool {
    let Some(mut before) = used() else { return true };
    while waits() {
        let Some(now) = used() else { return true };
        if is_idle(before, now) {
            return true;
        }
        before = now;
    }
    false
}

/// Whether a subject rested in the window between two accounts.
fn is_idle(before: Used, now: Used) -> bool {
    let cpu = Duration::from_nanos(now.cpu_ns.saturating_sub(before.cpu_ns));
    let written_bytes = now.written_bytes.saturating_sub(before.written_bytes);
    cpu <= IDLE_CPU && written_bytes <= IDLE_WRITTEN_BYTES
}

/// Writes everything of the directory's file system to the disk.
fn sync(dir: &Path) -> Result<()> {
    let synced = File::open(dir).and_then(|dir| Ok(rustix::fs::syncfs(dir)?));
    synced.map_err(|error| Error::io("sync", dir, error))
}

fn empty(dir: &Path) -> Result<()> {
    remove(dir)?;
    fs::create_dir_all(dir).map_err(|error| Error::io("create", dir, error))
}

fn remove(dir: &Path) -> Result<()> {
    cleanup::remove_dir(dir).map_err(|error| Error::io("remove", dir, error))
}

#[cfg(test)]
mod tests;
