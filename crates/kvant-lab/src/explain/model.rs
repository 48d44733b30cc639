//! An explanation as data: what the page and the text show, and what `--json` prints.

use crate::record::Suspect;
use serde::{Deserialize, Serialize};

/// The value of [`Explanation::format`].
pub const FORMAT: &str = "kvant-explanation";
/// The value of [`Explanation::version`].
pub const VERSION: u32 = 1;

/// What a stretch of time waited for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Explanation {
    /// Always [`FORMAT`].
    pub format: String,
    /// Version of the fields.
    pub version: u32,
    /// What was observed.
    pub source: String,
    /// Begin, monotonic.
    pub start_ns: u64,
    /// Length.
    pub length_ns: u64,
    /// Wall time minus monotonic time, in nanoseconds.
    pub wall_origin_ns: Option<i64>,
    /// The result in a few sentences, the most important first.
    pub verdict: Vec<String>,
    /// What limits the trust in it.
    pub warnings: Vec<String>,
    /// By operation and percentile.
    pub rows: Vec<Row>,
    /// What making suspects happen changed, if an experiment did that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub effects: Vec<Effect>,
    /// When the operation with the greatest excess was slow; `None` if it never was for a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_time: Option<SlowTime>,
    /// What the server used CPU time for, the largest growth first; empty if that is not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpu: Vec<CpuUse>,
    /// The slowest requests, slowest first.
    pub moments: Vec<Moment>,
    /// The whole stretch, in columns.
    pub overview: Overview,
}

impl Explanation {
    /// The shares of a row to tell. Those that cannot be told apart are one, whose other causes are
    /// in [`Share::or`]: they share equally in every resampling, so that their bounds add up, too.
    /// An experiment may tell them apart: then they are as they are.
    pub fn told_shares(&self, row: &Row) -> Vec<Share> {
        if !self.effects.is_empty() {
            return row.shares.clone();
        }
        let mut told: Vec<Share> = Vec::new();
        for share in &row.shares {
            let is_told =
                |one: &&mut Share| one.ground == share.ground && one.or.contains(&share.cause);
            match told.iter_mut().find(is_told) {
                Some(one) => {
                    one.part += share.part;
                    one.low += share.low;
                    one.high = (one.high + share.high).min(1.0);
                }
                None => told.push(share.clone()),
            }
        }
        told.sort_by(|a, b| b.part.total_cmp(&a.part));
        told
    }

    /// What an experiment says of a share that only coincides; `None` if it says nothing.
    pub fn effect_of(&self, row: &Row, share: &Share) -> Option<&Effect> {
        let is_of = |effect: &&Effect| {
            effect.cause() == share.cause
                && (&effect.operation, effect.percent) == (&row.operation, row.percent)
                && effect.finding() != Finding::Unknown
        };
        self.effects.iter().find(is_of).filter(|_| share.ground == Ground::Coincidence)
    }
}

/// A percentile of an operation, and what its excess consists of.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// Such as `get`.
    pub operation: String,
    /// Such as 99.9.
    pub percent: f64,
    /// Requests of the operation.
    pub count: u64,
    /// Requests at or above the percentile.
    pub tail_count: u64,
    /// The percentile.
    pub value_ns: u64,
    /// The same percentile where nothing disturbed, without waits that are evident.
    pub level_ns: u64,
    /// What is above the level.
    pub excess_ns: u64,
    /// Largest first, without empty ones; they add up to 1. Empty if there is no excess.
    pub shares: Vec<Share>,
}

/// A part of an excess.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Share {
    /// What it is given to.
    pub cause: Cause,
    /// The part, from 0 to 1.
    pub part: f64,
    /// 95 % interval of the part, by a block bootstrap over windows.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
    /// Why it is given to it.
    pub ground: Ground,
    /// Others that happened at the same time so often that they cannot be told apart from it.
    #[serde(default)]
    pub or: Vec<Cause>,
}

/// The longest stretch in which an operation was slow, and how many requests came meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SlowTime {
    /// The operation with the greatest excess: its windows decide what is slow.
    pub operation: String,
    /// Begin, monotonic.
    pub start_ns: u64,
    /// End, monotonic.
    pub end_ns: u64,
    /// Stretches in which it was slow for a second or more, this one included.
    pub stretch_count: usize,
    /// By operation.
    pub rates: Vec<Rate>,
}

/// How many responses of an operation were sent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Rate {
    /// Such as `get`.
    pub operation: String,
    /// In a second of the windows outside of all such stretches.
    pub calm: f64,
    /// In a second of the slow stretch.
    pub slow: f64,
}

/// What CPU time was used for.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CpuUse {
    /// Such as `range merge`: what was done, and its stage.
    pub purpose: String,
    /// CPUs, in seconds without a slow window.
    pub calm: f64,
    /// CPUs, in seconds with one.
    pub slow: f64,
}

/// Why a share is given to something.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ground {
    /// The requests themselves waited for it: phases, stall reasons, locks.
    Direct,
    /// Slow requests coincide with it more than by chance.
    Coincidence,
    /// What is left.
    #[default]
    Rest,
}

/// What requests can wait for.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", tag = "kind", content = "name")]
pub enum Cause {
    /// An event with this name, such as `flush` or `compaction`.
    Event(String),
    /// A write stall with this reason.
    Stall(String),
    /// An fsync of the log.
    Fsync,
    /// Blocks that were not in the cache.
    BlockReads,
    /// The allocator returned memory to the system.
    Allocator,
    /// A lock.
    Lock(String),
    /// The client sent a body slowly.
    ClientBody,
    /// The client read a response slowly.
    ClientReader,
    /// The generator sent late.
    Generator,
    /// Segments were sent again.
    Network,
    /// Other requests went first.
    Queueing,
    /// Threads of the server were ready and had no CPU.
    Scheduler,
    /// The hypervisor took CPU time.
    Stolen,
    /// Memory that the hypervisor had taken back.
    SlowMemory,
    /// Other processes used the CPUs.
    Neighbours,
    /// Nothing that is known.
    #[default]
    Unexplained,
}

impl Cause {
    /// For people.
    pub fn words(&self) -> String {
        match self {
            Cause::Event(name) => name.clone(),
            Cause::Stall(reason) => match reason.as_str() {
                "l0_tables" => "write stall (l0_tables: compaction is behind)".to_owned(),
                "memtables" => "write stall (memtables: flushes are behind)".to_owned(),
                _ => format!("write stall ({reason})"),
            },
            Cause::Fsync => "fsync of the log".to_owned(),
            Cause::BlockReads => "block reads (cache misses)".to_owned(),
            Cause::Allocator => "allocator (returns memory)".to_owned(),
            Cause::Lock(name) => format!("lock `{name}`"),
            Cause::ClientBody => "client: slow sender".to_owned(),
            Cause::ClientReader => "client: slow reader".to_owned(),
            Cause::Generator => "the generator itself".to_owned(),
            Cause::Network => "network (segments sent again)".to_owned(),
            Cause::Queueing => "queueing behind other requests".to_owned(),
            Cause::Scheduler => "scheduler (no CPU for the server)".to_owned(),
            Cause::Stolen => "steal by the hypervisor".to_owned(),
            Cause::SlowMemory => "slow memory (the hypervisor had taken it back)".to_owned(),
            Cause::Neighbours => "other processes on the CPUs".to_owned(),
            Cause::Unexplained => "unexplained".to_owned(),
        }
    }
}

/// What making a suspect happen did to a percentile.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Effect {
    /// [`crate::record::Case::id`].
    pub case: usize,
    /// What happened.
    pub suspect: Suspect,
    /// Such as `get`.
    pub operation: String,
    /// Such as 99.9.
    pub percent: f64,
    /// Blocks in which both moments have enough requests.
    pub block_count: usize,
    /// The percentile when nothing was done: the median of the controls; `None` without blocks.
    pub control_ns: Option<f64>,
    /// What it is more when the suspect happens, less if it is below 0: the median of the means of
    /// any two blocks; `None` without blocks.
    pub change_ns: Option<f64>,
    /// What may be said of the change; `None` with too few blocks.
    pub interval_ns: Option<(f64, f64)>,
    /// The least change that would have been seen with a probability of 95 %.
    pub detectable_ns: Option<f64>,
    /// Part of the excess of the percentile that coincides with the suspect, by the explanations
    /// of the same attempts; 0 if none does.
    #[serde(default)]
    pub coinciding_part: f64,
}

kvant_base::named_enum! {
    /// What an experiment says of a suspect.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Finding {
        /// Making it happen raises the percentile.
        Cause = "cause",
        /// Making it happen lowers the percentile.
        Relief = "relief",
        /// It coincides with slow requests, and no effect of making it happen is shown.
        Correlation = "correlation",
        /// No effect of making it happen is shown, and slow requests do not coincide with it.
        NoEffect = "no effect",
        /// There are too few blocks.
        Unknown = "unknown",
    }
}

impl Effect {
    /// What the experiment says.
    pub fn finding(&self) -> Finding {
        match self.interval_ns {
            None => Finding::Unknown,
            Some((low, _)) if low > 0.0 => Finding::Cause,
            Some((_, high)) if high < 0.0 => Finding::Relief,
            Some(_) if self.coinciding_part > 0.0 => Finding::Correlation,
            Some(_) => Finding::NoEffect,
        }
    }

    /// What evidence of the past calls the suspect.
    pub fn cause(&self) -> Cause {
        match self.suspect {
            Suspect::Neighbour => Cause::Neighbours,
            suspect => Cause::Event(suspect.name().to_owned()),
        }
    }
}

/// A slow request and what happened meanwhile.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Such as `put`.
    pub operation: String,
    /// Begin, monotonic.
    pub start_ns: u64,
    /// Latency.
    pub total_ns: u64,
    /// Phases in their order, without empty ones: name, begin since `start_ns`, length.
    pub phases: Vec<(String, u64, u64)>,
    /// Events around it: name, begin and end relative to `start_ns`.
    pub events: Vec<(String, i64, i64)>,
    /// What is known of it.
    pub sentence: String,
}

/// The whole stretch in columns of constant length.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Overview {
    /// Length of a column.
    pub column_ns: u64,
    /// Begin of each column, since the begin of the stretch.
    pub starts_ns: Vec<u64>,
    /// Responses in each column, all operations.
    pub counts: Vec<u64>,
    /// The median of each column.
    pub p50_ns: Vec<u64>,
    /// The 99th percentile of each column.
    pub p99_ns: Vec<u64>,
    /// The longest of each column.
    pub max_ns: Vec<u64>,
    /// Events: name, and begin and end of each since the begin of the stretch.
    pub lanes: Vec<(String, Vec<(u64, u64)>)>,
}
