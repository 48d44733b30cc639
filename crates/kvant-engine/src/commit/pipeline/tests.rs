use super::*;
use crate::commit::sync::LogFile;
use crate::events::EventSink;
use crate::format::FileNum;
use crate::options::SyncLevel;
use kvant_base::Events;
use kvant_base::log::NoLog;
use kvant_env::Fs;
use kvant_env::testing::{FaultOp, FaultyFs, MockClock};
use std::collections::VecDeque;
use std::io;
use std::path::Path;
use std::sync::OnceLock;

/// Records the calls of the pipeline.
struct FakeEnv {
    journal: Journal,
    fence_cause: OnceLock<Error>,
    /// Called by the next appends, one each. An append returns the error of its call.
    appends: NamedMutex<VecDeque<Append>>,
    /// Whether groups with a put fail for lack of space.
    disk_full: bool,
}

type Journal = Arc<NamedMutex<Vec<String>>>;
type Append = Box<dyn FnOnce() -> Result<()> + Send>;

impl CommitEnv for FakeEnv {
    type Writer = u64;

    fn check_writable(&self) -> Result<()> {
        let fenced = |cause: &Error| Err(cause.clone().with_kind(ErrorKind::Fenced));
        self.fence_cause.get().map_or(Ok(()), fenced)
    }

    fn fence(&self, cause: Error) -> Error {
        self.note("fence".into());
        self.fence_cause.get_or_init(|| cause).clone()
    }

    fn prepare(&self, _writer: &mut u64, group: Group<'_>) -> Result<()> {
        if self.disk_full && !group.deletes_only() {
            return Err(Error::new(ErrorKind::NoSpace, "no space"));
        }
        Ok(())
    }

    fn append(&self, end_bytes: &mut u64, group: Group<'_>, first_seq: SeqNum) -> Result<u64> {
        let planned = self.appends.lock().pop_front();
        if let Some(append) = planned {
            append()?;
        }
        *end_bytes += group.bytes as u64;
        self.note(format!("log {} at {}", keys(group), first_seq.0));
        Ok(*end_bytes)
    }

    fn insert(&self, _writer: &mut u64, group: Group<'_>, first_seq: SeqNum) {
        self.note(format!("memtable {} at {}", keys(group), first_seq.0));
    }

    fn publish(&self, last_seq: SeqNum) {
        self.note(format!("visible {}", last_seq.0));
    }

    fn wake_sync(&self) {
        self.note("wake sync".into());
    }
}

impl FakeEnv {
    fn note(&self, line: String) {
        self.journal.lock().push(line);
    }
}

fn keys(group: Group<'_>) -> String {
    let keys = group.entries(SeqNum(1)).map(|(key, _)| {
        std::str::from_utf8(key.user_key).expect("keys of tests are text").to_owned()
    });
    keys.collect::<Vec<_>>().join(" ")
}

/// A pipeline whose log is a file on `disk`.
fn pipeline(
    level: SyncLevel,
    disk_full: bool,
    disk: &FaultyFs,
) -> (Arc<Pipeline<FakeEnv>>, Journal) {
    let clock = Arc::new(MockClock::new(0));
    let events = EventSink::new(clock.clone(), Events::new(1));
    let sync = LogSync::new(level, clock, events, Arc::new(NoLog));
    let path = Path::new("/000001.wal");
    let file = disk.create(path).expect("created");
    let (num, path) = (FileNum(1), path.to_path_buf());
    sync.add_file(LogFile {
        num,
        path,
        file,
        written_bytes: 0,
        synced_bytes: 0,
        doubtful_bytes: 0,
    });
    let journal = Journal::new(NamedMutex::new("journal", Vec::new()));
    let env = FakeEnv {
        journal: Arc::clone(&journal),
        fence_cause: OnceLock::new(),
        appends: NamedMutex::new("appends", VecDeque::new()),
        disk_full,
    };
    (Arc::new(Pipeline::new(env, Arc::new(sync), 0, SeqNum(1))), journal)
}

fn at_os() -> (Arc<Pipeline<FakeEnv>>, Journal) {
    pipeline(SyncLevel::Os, false, &FaultyFs::new(1))
}

fn put(key: &str, value_bytes: usize) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.put(key.as_bytes(), &vec![0; value_bytes], None);
    batch
}

fn delete(key: &str) -> WriteBatch {
    let mut batch = WriteBatch::new();
    batch.delete(key.as_bytes());
    batch
}

/// Submits a batch whose completion writes its outcome into the journal.
fn submit(pipeline: &Pipeline<FakeEnv>, name: &'static str, batch: WriteBatch) {
    let journal = Arc::clone(&pipeline.env.journal);
    let done = move |outcome: Result<()>| {
        let outcome = outcome.map_or_else(|error| format!("{:?}", error.kind()), |()| "ok".into());
        journal.lock().push(format!("{name} {outcome}"));
    };
    pipeline.submit(batch, Box::new(done));
}

/// Makes the next append submit `batches` first: they are queued together while the caller is the
/// leader.
fn queue_behind_next(pipeline: &Arc<Pipeline<FakeEnv>>, batches: Vec<(&'static str, WriteBatch)>) {
    let queueing = Arc::clone(pipeline);
    pipeline.env.appends.lock().push_back(Box::new(move || {
        batches.into_iter().for_each(|(name, batch)| submit(&queueing, name, batch));
        Ok(())
    }));
}

fn fail_next(pipeline: &Pipeline<FakeEnv>, kind: ErrorKind) {
    let error = Error::new(kind, "planned");
    pipeline.env.appends.lock().push_back(Box::new(|| Err(error)));
}

/// The journal since the last call.
fn since(journal: &Journal) -> Vec<String> {
    std::mem::take(&mut journal.lock())
}

/// The log records since the last call: the keys of each.
fn records(journal: &Journal) -> Vec<String> {
    let lines = since(journal).into_iter();
    lines
        .filter_map(|line| Some(line.strip_prefix("log ")?.split(" at ").next()?.to_owned()))
        .collect()
}

#[test]
fn a_batch_goes_to_the_log_then_into_the_memtable_then_to_readers_and_its_completion() {
    let (pipeline, journal) = at_os();
    submit(&pipeline, "first", put("a", 1));
    assert_eq!(since(&journal), ["log a at 1", "memtable a at 1", "visible 1", "first ok"]);
    submit(&pipeline, "empty", WriteBatch::new());
    assert_eq!(since(&journal), ["empty ok"]);
    submit(&pipeline, "second", delete("b"));
    assert_eq!(since(&journal), ["log b at 2", "memtable b at 2", "visible 2", "second ok"]);
}

#[test]
fn batches_that_find_a_leader_form_its_next_group() {
    let (pipeline, journal) = at_os();
    queue_behind_next(&pipeline, vec![("second", put("b", 1)), ("third", put("c", 1))]);
    submit(&pipeline, "first", put("a", 1));
    assert_eq!(
        since(&journal),
        [
            "log a at 1",
            "memtable a at 1",
            "visible 1",
            "first ok",
            "log b c at 2",
            "memtable b c at 2",
            "visible 3",
            "second ok",
            "third ok"
        ]
    );
}

#[test]
fn the_leadership_passes_on_when_the_queue_is_empty() {
    const THREADS: u64 = 4;
    const BATCHES: u64 = 200;
    let (pipeline, journal) = at_os();
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| (0..BATCHES).for_each(|_| submit(&pipeline, "one", put("a", 1))));
        }
    });
    let lines = since(&journal);
    let count = |text: &str| lines.iter().filter(|line| line.starts_with(text)).count() as u64;
    assert_eq!(count("one ok"), THREADS * BATCHES, "each is completed once");
    // Each group begins after the one before it, and nothing is visible before it is in the
    // memtable.
    let mut next_seq = 1;
    for group in lines.iter().filter(|line| line.starts_with("log ")) {
        let (keys, first_seq) = group[4..].split_once(" at ").expect("a record has a number");
        assert_eq!(first_seq.parse(), Ok(next_seq), "{group}");
        next_seq += keys.split(' ').count() as u64;
    }
    assert_eq!(next_seq, THREADS * BATCHES + 1);
    assert_eq!(pipeline.lock().next_seq, SeqNum(next_seq));
}

#[test]
fn a_small_batch_does_not_wait_for_large_ones_behind_it() {
    let (pipeline, journal) = at_os();
    let small = 1 << 10;
    let large = 1 << 20;
    queue_behind_next(
        &pipeline,
        vec![
            ("small", put("a", small)),
            ("small", put("b", small)),
            ("large", put("c", large)),
            ("small", put("d", small)),
            ("large", put("e", large)),
            ("large", put("f", large)),
        ],
    );
    submit(&pipeline, "first", put("_", small));
    assert_eq!(records(&journal), ["_", "a b", "c", "d", "e", "f"]);
}

#[test]
fn the_limit_of_a_group_follows_its_first_batch() {
    let lengths = |first_bytes: usize| {
        let (pipeline, journal) = at_os();
        let first = vec![("first", put("a", first_bytes))];
        let others = (0..100).map(|_| ("other", put("b", 32 << 10)));
        queue_behind_next(&pipeline, first.into_iter().chain(others).collect());
        submit(&pipeline, "before", put("_", 1));
        let group = records(&journal).swap_remove(1);
        group.split(' ').count()
    };
    // 128 KiB may join a small batch: three batches of a little more than 32 KiB.
    assert_eq!(lengths(1), 4);
    assert_eq!(lengths(120 << 10), 4);
    // A larger batch and the batches that join it may have 1 MiB together.
    assert_eq!(lengths(512 << 10), 1 + 15);
    assert_eq!(lengths(2 << 20), 1, "a batch over the limit is a group of its own");
}

#[test]
fn without_space_the_deletes_of_a_group_succeed() {
    let (pipeline, journal) = pipeline(SyncLevel::Os, true, &FaultyFs::new(1));
    queue_behind_next(
        &pipeline,
        vec![("put", put("a", 1)), ("delete", delete("b")), ("put", put("c", 1))],
    );
    submit(&pipeline, "first", delete("_"));
    let first = ["log _ at 1", "memtable _ at 1", "visible 1", "first ok"];
    let second =
        ["put NoSpace", "log b at 2", "memtable b at 2", "visible 2", "delete ok", "put NoSpace"];
    assert_eq!(since(&journal), [first.as_slice(), &second].concat());
}

#[test]
fn a_failed_append_leaves_no_gap_in_the_sequence_numbers() {
    let (pipeline, journal) = at_os();
    fail_next(&pipeline, ErrorKind::Io);
    submit(&pipeline, "failing", put("a", 1));
    submit(&pipeline, "next", put("b", 1));
    assert_eq!(
        since(&journal),
        ["failing Io", "log b at 1", "memtable b at 1", "visible 1", "next ok"]
    );
}

#[test]
fn an_append_of_unknown_outcome_fences() {
    let (pipeline, journal) = at_os();
    queue_behind_next(&pipeline, vec![("second", put("b", 1)), ("third", put("c", 1))]);
    fail_next(&pipeline, ErrorKind::OutcomeUnknown);
    submit(&pipeline, "first", put("a", 1));
    submit(&pipeline, "later", put("d", 1));
    assert_eq!(
        since(&journal)[4..],
        ["fence", "second OutcomeUnknown", "third OutcomeUnknown", "later Fenced"]
    );
    assert_eq!(pipeline.lock().next_seq, SeqNum(2));
}

#[test]
fn at_always_groups_become_visible_together_after_one_sync() {
    let (pipeline, journal) = pipeline(SyncLevel::Always, false, &FaultyFs::new(1));
    submit(&pipeline, "first", put("a", 1));
    submit(&pipeline, "second", put("b", 1));
    assert_eq!(
        since(&journal),
        [
            "log a at 1",
            "memtable a at 1",
            "wake sync",
            "log b at 2",
            "memtable b at 2",
            "wake sync"
        ]
    );
    assert_eq!(pipeline.sync_step(), SyncStep::Synced { has_published: true });
    assert_eq!(since(&journal), ["visible 2", "first ok", "second ok"]);
    assert_eq!(pipeline.sync_step(), SyncStep::NotDue(None));
}

#[test]
fn a_failed_sync_fences_and_no_group_that_waits_becomes_visible() {
    let disk = FaultyFs::new(1);
    let (pipeline, journal) = pipeline(SyncLevel::Always, false, &disk);
    submit(&pipeline, "first", put("a", 1));
    since(&journal);
    disk.fail_next(FaultOp::SyncData, ".wal", io::ErrorKind::Other, 1);
    assert_eq!(pipeline.sync_step(), SyncStep::Fenced);
    assert_eq!(since(&journal), ["fence", "first OutcomeUnknown"]);
    submit(&pipeline, "later", put("b", 1));
    assert_eq!(since(&journal), ["later Fenced"]);
    // A group that was written while the failing sync ran.
    let waits = Journal::clone(&journal);
    let done: Completion = Box::new(move |outcome| {
        waits.lock().push(format!("waiting {:?}", outcome.expect_err("fenced").kind()));
    });
    pipeline.sync.written(9, SeqNum(9), vec![done]);
    assert_eq!(pipeline.sync_step(), SyncStep::Fenced);
    assert_eq!(since(&journal), ["waiting OutcomeUnknown"]);
}
