//! A plan: what an experiment is made of, after parsing and checks.
//!
//! A plan names *subjects* (servers), *data*, *workloads* and *phases*, and runs every phase of
//! every workload on every subject, in every cell of the *sweep*. Each combination is a
//! [`crate::record::Case`].
//!
//! - [`Plan::read`] and [`Plan::parse`] read TOML: `parse` on top of `reader`, which
//!   knows the place of each value; `check` compares the parts with each other, with `places`.
//! - [`Plan::cases`] and [`Plan::resolve`] (`cases`) make cases, and what a case runs.
//! - [`Plan::compare`] makes a plan a comparison of two sides.
//! - [`Plan::intervene`] makes a plan an experiment with suspects of slow requests,
//!   [`Plan::what_if`] one that speeds stages up.
//! - [`Plan::quick`] shortens a plan, by [`Plan::expected_duration`] (`estimate`).
//! - `Subject::elsewhere` tells stores that the lab can neither copy nor empty.
//! - `catalogue` has the plans that come with the program.
//!
//! Invariant: a [`Plan`] that was read has no problem: its references exist, each share of a
//! maximum has one before it, and the number of cases is bounded.

mod cases;
mod catalogue;
mod check;
mod compare;
mod elsewhere;
mod estimate;
mod intervene;
mod parse;
mod places;
mod problem;
mod quick;
mod reader;
#[cfg(test)]
mod tests;
mod what_if;

pub use catalogue::{Shipped, shipped};
pub(crate) use compare::STORE_OPTIONS;
pub use problem::{Problem, Problems};

use kvant_base::tag::Stage;
use kvant_load::assertion::Assertion;
use kvant_load::workload::WorkloadConfig;
use kvant_load::{Arrival, StatusSet};
use std::path::PathBuf;
use std::time::Duration;

/// An experiment.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file's name without `.toml`.
    pub name: String,
    /// One line.
    pub title: String,
    /// The text of the file.
    pub text: String,
    /// The directory of the file: relative paths in the plan start there.
    pub dir: PathBuf,
    /// Seed of everything random.
    pub seed: u64,
    /// Times that each case is run. Repeats are the outermost loop, so that subjects take turns.
    pub repeats: u32,
    /// What a rate has to hold in a search.
    pub objectives: Vec<Assertion>,
    /// CPUs of subjects; empty: any.
    pub server_cpus: Vec<u32>,
    /// CPUs of the generator; empty: any.
    pub generator_cpus: Vec<u32>,
    /// The servers; never empty.
    pub subjects: Vec<Subject>,
    /// What subjects store before the first case; `None`: nothing.
    pub data: Option<Data>,
    /// The requests; never empty.
    pub workloads: Vec<Workload>,
    /// What is done with each workload, in order; never empty.
    pub phases: Vec<Phase>,
    /// Parameters that take several values; the first varies slowest.
    pub sweep: Vec<SweepAxis>,
    /// Figures of others.
    pub known: Vec<crate::record::Known>,
    /// What was shortened, a sentence each.
    pub shortened: Vec<String>,
    /// What is compared, if it is a comparison of two sides.
    pub comparison: Option<crate::record::ComparisonFacts>,
    /// What is made to happen, if it is an experiment with suspects.
    pub intervention: Option<crate::record::InterventionFacts>,
    /// Which stages are sped up, if it asks what that would bring: its phases have one each, and
    /// each repeat is a block of the experiment.
    pub what_if: Option<crate::record::WhatIfFacts>,
}

/// A server under test.
#[derive(Clone, Debug, PartialEq)]
pub struct Subject {
    /// Its name; unique.
    pub name: String,
    /// How it is started.
    pub kind: SubjectKind,
    /// Path of the URL that responds with 2xx when the server is ready; empty: the server is ready
    /// when it accepts a connection.
    pub ready: String,
    /// How long it may take until then.
    pub ready_max: Duration,
    /// Names of the workloads that it can serve; empty: all.
    pub workloads: Vec<String>,
    /// Whether it gives the same response to all requests and stores nothing: it is not filled.
    pub has_fixed_response: bool,
    /// Stores the data instead of HTTP requests; empty: HTTP requests do. In its arguments `{port}`
    /// and `{keys}` are replaced.
    pub fill_command: Vec<String>,
    /// The shortest warm-up, for a server that compiles itself. [`Plan::resolve`] applies it to
    /// phases that do not search; a search warms up before its first step.
    pub warmup_min: Duration,
    /// Whether all its phases are recorded by its profiler. [`Plan::resolve`] applies it.
    pub is_profiled: bool,
    /// Requests in place of those of the workload with that name, for a server that speaks another
    /// protocol. [`Plan::resolve`] applies them.
    pub requests: Vec<(String, Requests)>,
}

/// How a subject is started.
#[derive(Clone, Debug, PartialEq)]
pub enum SubjectKind {
    /// `kvant serve`, by this program unless another is named.
    Kvant {
        /// The program.
        program: Option<PathBuf>,
        /// Options of `serve` without dashes, and their values.
        options: Vec<(String, String)>,
    },
    /// Any program. In its arguments `{port}` is a free port, `{data}` an empty directory that
    /// keeps its data, `{dir}` the directory of the plan.
    Command {
        /// Commands that are run once, before its first start, such as a build.
        prepare: Vec<Vec<String>>,
        /// The program and its arguments.
        command: Vec<String>,
        /// Environment variables.
        environment: Vec<(String, String)>,
        /// If a program is missing, the subject is left out with this advice instead of failing
        /// the run.
        install: Option<String>,
    },
    /// A server that runs already. It is not started, restored or accounted for unless it listens
    /// on this machine.
    Url(String),
}

/// What is stored before the first case.
#[derive(Clone, Debug)]
pub struct Data {
    /// Keys and values: those of native workloads with the same settings.
    pub workload: WorkloadConfig,
    /// Connections of the fill.
    pub connection_count: usize,
    /// Part of the keys, in 0..1, that are deleted after the fill.
    pub deleted_part: f64,
    /// Seconds after which values expire, for all of them.
    pub ttl_s: Option<u64>,
}

/// Requests.
#[derive(Clone, Debug)]
pub struct Workload {
    /// Its name; unique.
    pub name: String,
    /// What makes the requests.
    pub requests: Requests,
    /// Connections.
    pub connection_count: usize,
    /// Threads of the generator.
    pub thread_count: usize,
    /// Distribution of the planned times.
    pub arrival: Arrival,
    /// Seed of arrivals and scripts; native requests have their own.
    pub seed: u64,
    /// Statuses over 399 that count as success.
    pub ok_statuses: StatusSet,
    /// Deadline of a request.
    pub timeout: Duration,
    /// How long before the next request is due threads of the generator stop to sleep.
    pub spin: Duration,
    /// Load that runs at the same time and is measured on its own.
    pub beside: Option<Box<Beside>>,
    /// Whether it changes the data, so that they are restored before another workload.
    pub changes_data: bool,
    /// Whether the subject stores nothing when it starts. [`Plan::resolve`] then gives no data.
    pub starts_empty: bool,
}

/// A second load.
#[derive(Clone, Debug)]
pub struct Beside {
    /// Its requests, connections and threads. Its own `beside` is `None`.
    pub workload: Workload,
    /// Its rate; 0 for a closed loop; `None`: an idle crowd, which sends one request on each
    /// connection and is silent afterwards.
    pub rate: Option<PlannedRate>,
    /// Connections of an idle crowd that send an endless head, a byte per second, and are opened
    /// again when the server closes them.
    pub slow_head_count: usize,
}

/// What makes requests.
#[derive(Clone, Debug, PartialEq)]
pub enum Requests {
    /// A native workload.
    Native(WorkloadConfig),
    /// A Lua script and its arguments.
    Script {
        /// The file.
        file: PathBuf,
        /// After `--`.
        args: Vec<String>,
    },
    /// One request.
    Fixed {
        /// Such as `GET`.
        method: String,
        /// Such as `/v0/status`.
        path: String,
        /// Body.
        body: Option<Vec<u8>>,
    },
    /// An external generator: its output says how many responses there were. For servers that do
    /// not speak HTTP. In its arguments `{port}` and `{seconds}` (whole ones) are replaced, and
    /// `{keys}` by [`Plan::resolve`].
    Command {
        /// The program and its arguments.
        command: Vec<String>,
        /// Text in front of the number of responses, or of responses per second, in its output.
        count_after: String,
        /// Whether that number is per second.
        is_rate: bool,
    },
}

/// What is done with a workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Phase {
    /// Its name; unique.
    pub name: String,
    /// Names of the workloads that it is for; empty: all.
    pub workloads: Vec<String>,
    /// What is done.
    pub task: PhaseTask,
    /// Load before the measured time.
    pub warmup: Duration,
    /// The measured time of each rate.
    pub duration: Duration,
    /// Whether the subject is recorded by its profiler meanwhile.
    pub is_profiled: bool,
    /// The stage of the subject's work that is sped up ([`Plan::what_if`]).
    pub sped_up: Option<Stage>,
}

/// What a phase does.
#[derive(Clone, Debug, PartialEq)]
pub enum PhaseTask {
    /// Holds a rate.
    Hold(PlannedRate),
    /// Searches for the highest rate that holds the objectives.
    FindMax,
    /// Holds several rates in order.
    Steps(Vec<PlannedRate>),
    /// A rate that changes linearly.
    Ramp {
        /// Requests per second at the start.
        from: PlannedRate,
        /// Requests per second at the end.
        to: PlannedRate,
    },
    /// Factors of the maximum, with a time of half the maximum after each beyond it.
    Factors(Vec<f64>),
    /// A closed loop.
    Closed,
}

/// A planned rate.
#[derive(Clone, Debug, PartialEq)]
pub enum PlannedRate {
    /// Requests per second.
    Fixed(f64),
    /// A share of the maximum.
    Share {
        /// 0.8 is 80 %.
        part: f64,
        /// Whose maximum.
        of: MaximumOf,
    },
    /// Requests per second, but no more than a share of the maximum.
    AtMost {
        /// Requests per second.
        per_s: f64,
        /// 0.8 is 80 %.
        part: f64,
        /// Whose maximum.
        of: MaximumOf,
    },
}

/// The maximum that a share is of. It must come before in the plan.
#[derive(Clone, Debug, PartialEq)]
pub enum MaximumOf {
    /// That of the same subject, cell and workload, from its phase of the kind `find-max` or
    /// `closed`.
    Own,
    /// The same of another workload of the same subject and cell.
    Workload(String),
    /// That of the same workload and cell of another subject.
    Subject(String),
    /// The least over all subjects, so that all are held at one rate.
    Least,
}

/// A parameter that takes several values.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepAxis {
    /// An option of `kvant serve` such as `workers`, or `connections`, `value-bytes` or `rate`.
    pub name: String,
    /// The values, as in a plan or on a command line.
    pub values: Vec<String>,
    /// Names of the subjects that it is for; empty: all that it concerns.
    pub subjects: Vec<String>,
    /// Names of the workloads that it is for; empty: all that it concerns.
    pub workloads: Vec<String>,
    /// Names of the phases that it is for; empty: all that it concerns.
    pub phases: Vec<String>,
}

/// What a case runs, with the values of its cell applied.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The server.
    pub subject: Subject,
    /// Its data.
    pub data: Option<Data>,
    /// The requests.
    pub workload: Workload,
    /// What is done.
    pub phase: Phase,
}
