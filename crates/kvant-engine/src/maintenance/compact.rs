//! Compactions: asks the picker for a plan, runs it, installs the outcome.
//!
//! Where there is less room than all inputs take, a merge is done in [`steps`]; where there is not
//! even room for one, the picker returns a smaller plan, or none: then puts are refused until space
//! returns.

use super::Maintenance;
use super::pace::{Pace, Work};
use crate::compaction::{
    CompactionPlan, OutputCutter, PlanKind, Room, TreeShape, VersionSummary, pick, pick_manual,
    pick_small, with_overhead,
};
use crate::events::{number, text};
use crate::format::{FileKind, FileNum, file_name};
use crate::iter::{
    CompactionIter, Horizon, LevelIter, MergeIter, MergeSource, PacedIter, TableRun,
};
use crate::table::Table;
use crate::tree::outputs::Outputs;
use crate::version::{TableFile, Version, VersionEdit};
use kvant_base::events::Fields;
use kvant_base::log::Level;
use kvant_base::{Consumer, Error, ErrorKind, Result};
use std::sync::Arc;
use std::sync::atomic::Ordering;

mod steps;

/// After a compaction that ran out of room, this many searches for one count on half of it, and do
/// not hope that tombstones free some.
const CAUTION_MAX: u32 = 8;

/// Levels, ascending, and tables of each in the level's order.
type Inputs = Vec<(usize, Vec<Arc<TableFile<Table>>>)>;

/// What a merge and its steps share.
struct Merging<'a> {
    plan: &'a CompactionPlan,
    work: Work,
    /// Largest user key and size of each.
    grandparents: Vec<(Vec<u8>, u64)>,
    output_table_bytes: u64,
}

impl Maintenance {
    /// True when there was something to do.
    pub(crate) fn compact_step(&self, requested: u64) -> Result<bool> {
        let manual = self.manual.lock().served < requested;
        let caution = self.compaction_caution.load(Ordering::Relaxed);
        let room = |in_distress, is_hopeful| Room {
            bytes: self.admission.space.room_bytes(in_distress) >> u32::from(caution > 0),
            is_hopeful,
        };
        let rooms = [(false, false), (false, true), (true, false), (true, true)];
        let may_try = |is_hopeful: bool| caution == 0 || !is_hopeful;
        let (wanted, plan, level_0_due, until_level_0_bytes) = self.tree.with_summary(|summary| {
            let options = &self.tree.compaction_options;
            let until_level_0_bytes = self.until_level_0_bytes(summary);
            let pick = if manual { pick_manual } else { pick };
            let level_0_due = summary.levels[0].len() >= options.l0_compact_count;
            let wanted = pick(summary, options);
            let plan = wanted.as_ref().and_then(|wanted| {
                let mut rooms = rooms.iter().filter(|(_, is_hopeful)| may_try(*is_hopeful));
                rooms.find_map(|&(in_distress, is_hopeful)| {
                    let room = room(in_distress, is_hopeful);
                    let fitting = room.fits(wanted).then(|| wanted.clone());
                    fitting.or_else(|| pick_small(summary, options, room))
                })
            });
            (wanted, plan, level_0_due, until_level_0_bytes)
        });
        self.admission.note_level_0_stuck(wanted.is_none() && level_0_due);
        let has_no_room = wanted.is_some() && plan.is_none();
        self.admission.compaction_has_no_room.store(has_no_room, Ordering::Relaxed);
        if has_no_room {
            if self.tree.remove_obsolete_tables() {
                // Obsolete tables took the room.
                return Ok(true);
            }
            self.compaction_caution.store(caution.saturating_sub(1), Ordering::Relaxed);
            return Err(Error::new(ErrorKind::NoSpace, "no room for any compaction")
                .with_file(&self.context.dir));
        }
        let Some(plan) = plan else {
            // Writers are not faster than background work any more.
            if self.tree.views.load().sealed.is_empty() {
                self.log.env.next_log.remove_spares();
            }
            self.serve_manual(requested, None);
            return Ok(false);
        };
        let result = self.compact(&plan, until_level_0_bytes);
        if let Err(error) = &result
            && error.kind() == ErrorKind::Corruption
        {
            self.leave_alone(&plan, error);
        }
        let caution = match &result {
            Err(error) if error.kind() == ErrorKind::NoSpace => CAUTION_MAX,
            _ => 0,
        };
        self.compaction_caution.store(caution, Ordering::Relaxed);
        result.map(|()| true)
    }

    /// Bytes that compactions below level 0 read before a full level 0 is compacted.
    fn until_level_0_bytes(&self, summary: &VersionSummary<'_>) -> u64 {
        let (options, compaction) = (&self.context.options, &self.tree.compaction_options);
        // Memtables are a part of its load, but not of its score.
        let full_count = options.l0_stop_count.saturating_sub(options.memtables_sealed_max);
        let full_score = full_count as f64 / options.l0_compact_count as f64;
        let shape = TreeShape::new(summary, compaction);
        shape.estimate_below(summary, full_score.max(1.0), compaction.table_bytes as f64, 0.0)
            as u64
    }

    /// Reports success, or a failure, to the manual requests up to `requested`.
    pub(crate) fn serve_manual(&self, requested: u64, failure: Option<Error>) {
        let mut manual = self.manual.lock();
        let served = requested.min(manual.requested);
        if manual.served < served {
            manual.served = served;
            manual.failure = failure;
            drop(manual);
            self.context.progressed.notify_all();
        }
    }

    /// A table of the plan has an unreadable block. Its other keys stay readable where it is, so it
    /// is not compacted again.
    fn leave_alone(&self, plan: &CompactionPlan, error: &Error) {
        let damaged = error.file().and_then(|path| path.file_name()?.to_str().map(str::to_owned));
        let mut versions = self.tree.versions.lock();
        for &num in plan.inputs.iter().flat_map(|(_, nums)| nums) {
            let name = file_name(FileKind::Table, num);
            if damaged.as_deref().is_none_or(|damaged| damaged == name) {
                versions.unreadable.insert(num);
            }
        }
    }

    fn compact(&self, plan: &CompactionPlan, until_level_0_bytes: u64) -> Result<()> {
        let (outputs, read_bytes, us) = self.run_job(
            &self.compactions,
            plan.output_level,
            describe(plan),
            || self.run_plan(plan, until_level_0_bytes),
            |outputs| vec![("output_bytes", number(outputs.written_bytes))],
        )?;
        self.context.log.event(
            Level::Info,
            "compaction",
            &[
                ("reason", &plan.reason.name()),
                ("output_level", &plan.output_level),
                ("input_tables", &plan.inputs.iter().map(|(_, nums)| nums.len()).sum::<usize>()),
                ("input_bytes", &read_bytes),
                ("output_tables", &outputs.tables.len()),
                ("output_bytes", &outputs.written_bytes),
                ("us", &us),
            ],
        );
        self.note_progress();
        Ok(())
    }

    fn run_plan(&self, plan: &CompactionPlan, until_level_0_bytes: u64) -> Result<(Outputs, u64)> {
        let whole_bytes = with_overhead(plan.input_bytes);
        // As a whole it must leave the room that puts are accepted for.
        let wanted_bytes = whole_bytes.saturating_add(self.admission.working_bytes());
        let is_short = || wanted_bytes > self.admission.space.room_bytes(false);
        let in_steps = is_short() && {
            // Perhaps only until the inputs of earlier compactions are removed.
            self.tree.remove_obsolete_tables();
            is_short()
        };
        let needed_bytes = match plan.kind {
            PlanKind::Merge if in_steps => {
                plan.room_bytes.min(self.admission.space.room_bytes(true))
            }
            PlanKind::Merge => whole_bytes,
            PlanKind::Move | PlanKind::Drop => 0,
        };
        let Some(_room) = self.admission.space.make_room(needed_bytes)? else {
            return Err(Error::new(ErrorKind::NoSpace, "no room for a compaction")
                .with_file(&self.context.dir));
        };
        let view = self.tree.views.load_full();
        let mut edit = VersionEdit::default();
        let mut inputs: Inputs = Vec::new();
        for (level, nums) in &plan.inputs {
            edit.removed.extend(nums.iter().map(|&num| (*level, num)));
            inputs.push((*level, files(&view.version, *level, nums)));
        }
        match plan.kind {
            PlanKind::Drop => {
                self.install_compaction(edit, &[])?;
                Ok((Outputs::default(), 0))
            }
            PlanKind::Move => {
                let moved = inputs.iter().flat_map(|(_, files)| files);
                edit.added = moved.map(|file| (plan.output_level, file.meta.clone())).collect();
                self.install_compaction(edit, &[])?;
                Ok((Outputs::default(), 0))
            }
            PlanKind::Merge => {
                let grandparents = files(&view.version, plan.output_level + 1, &plan.grandparents);
                let grandparents: Vec<_> = grandparents
                    .iter()
                    .map(|file| (file.meta.largest.user_key.clone(), file.meta.file_bytes))
                    .collect();
                // Removed inputs free their space only once no reader holds them.
                drop(view);
                let output_table_bytes = self.admission.space.output_table_bytes();
                let from_level_0 = inputs.iter().filter(|(level, _)| *level == 0);
                let level_0_count = from_level_0.map(|(_, files)| files.len()).sum();
                let input_bytes = plan.input_bytes;
                let work = Work::Compaction { level_0_count, input_bytes, until_level_0_bytes };
                let files = inputs.iter().flat_map(|(_, files)| files);
                let entry_count = files.map(|file| file.meta.entry_count).sum();
                let mut pace = Pace::new(&self.context, &self.admission, work, entry_count);
                let merging = Merging { plan, work, grandparents, output_table_bytes };
                let outputs = if in_steps && inputs.len() == 2 {
                    self.merge_in_steps(&merging, &mut pace, inputs)?
                } else {
                    let outputs = self.write_merged(&merging, &mut pace, all_sources(inputs))?;
                    edit.added = outputs.added(plan.output_level);
                    self.install_compaction(edit, &outputs.tables)?;
                    outputs
                };
                Ok((outputs, plan.input_bytes))
            }
        }
    }

    /// Writes the entries of `sources` that must be kept as tables of the plan's output level.
    fn write_merged(
        &self,
        merging: &Merging<'_>,
        pace: &mut Pace<'_>,
        sources: Vec<MergeSource>,
    ) -> Result<Outputs> {
        let plan = merging.plan;
        let grandparents: Vec<_> = merging
            .grandparents
            .iter()
            .map(|(largest, bytes)| (largest.as_slice(), *bytes))
            .collect();
        let cutter = OutputCutter::new(merging.output_table_bytes, &grandparents);
        let horizon = Horizon {
            snapshots: self.tree.pinned_seqs.seqs(),
            bottommost: plan.bottommost,
            now_ms: self.context.env.clock.wall_ms(),
        };
        let mut passed = |bytes| pace.passed(bytes);
        let merged = PacedIter::new(MergeIter::new(sources), &mut passed);
        let mut kept = CompactionIter::new(merged, horizon)?;
        let mut progress = |bytes: u64| {
            self.admission.gate.earn(merging.work.ends(), bytes);
            self.context.check_open()
        };
        self.tree.write_tables(&mut kept, plan.output_level, Some(cutter), &mut progress)
    }

    fn install_compaction(
        &self,
        edit: VersionEdit,
        opened: &[Arc<TableFile<Table>>],
    ) -> Result<()> {
        let mut versions = self.tree.versions.lock();
        self.tree.apply(&mut versions, edit, self.log.env.known_logs(), opened, None)
    }
}

fn describe(plan: &CompactionPlan) -> Fields {
    let mut fields = vec![
        ("reason", text(plan.reason.name())),
        ("kind", text(plan.kind.name())),
        ("input_bytes", number(plan.input_bytes)),
    ];
    if let Some((from_level, _)) = plan.inputs.first() {
        fields.push(("from_level", number(*from_level as u64)));
    }
    if plan.kind != PlanKind::Drop {
        fields.push(("to_level", number(plan.output_level as u64)));
    }
    fields
}

/// The tables of a level that have these numbers.
fn files(version: &Version<Table>, level: usize, nums: &[FileNum]) -> Vec<Arc<TableFile<Table>>> {
    if nums.is_empty() {
        return Vec::new();
    }
    version.tables(level).iter().filter(|file| nums.contains(&file.meta.num)).cloned().collect()
}

fn all_sources(inputs: Inputs) -> Vec<MergeSource> {
    let sources = inputs.into_iter().map(|(level, files)| sources(level, files));
    sources.flatten().collect()
}

/// The entries of some tables of a level: those of level 0 overlap, those of another level follow
/// each other.
fn sources(level: usize, files: Vec<Arc<TableFile<Table>>>) -> Vec<MergeSource> {
    if level == 0 {
        let iter = |file: Arc<TableFile<Table>>| -> MergeSource {
            Box::new(file.table.iter(false, Consumer::Compaction).checked())
        };
        return files.into_iter().map(iter).collect();
    }
    let open =
        |file: &Arc<TableFile<Table>>| Ok(file.table.iter(false, Consumer::Compaction).checked());
    vec![Box::new(LevelIter::new(TableRun::Tables(files), open))]
}
