//! The plans that come with the program: those of `lab/plans`, compiled in.
//!
//! They use native workloads, so that they need no other file; `lab/workloads` has the same
//! requests as scripts. Subjects that are built from the repository, such as LevelDB's, need a copy
//! of it.

use super::Plan;
use super::problem::{Problem, Problems};
use super::reader::{listed, nearest};
use kvant_env::host;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// Where the plans are in a copy of the source.
const DIR: &str = "lab/plans";

/// Names and texts.
const PLANS: [(&str, &str); 20] = [
    ("compare", include_str!("../../../../lab/plans/compare.toml")),
    ("intervene", include_str!("../../../../lab/plans/intervene.toml")),
    ("what-if", include_str!("../../../../lab/plans/what-if.toml")),
    ("seed-000", include_str!("../../../../lab/plans/seed-000.toml")),
    ("seed-001", include_str!("../../../../lab/plans/seed-001.toml")),
    ("seed-002", include_str!("../../../../lab/plans/seed-002.toml")),
    ("seed-003", include_str!("../../../../lab/plans/seed-003.toml")),
    ("seed-004", include_str!("../../../../lab/plans/seed-004.toml")),
    ("seed-004-cluster", include_str!("../../../../lab/plans/seed-004-cluster.toml")),
    ("workers-and-queue", include_str!("../../../../lab/plans/workers-and-queue.toml")),
    ("bench-cpu", include_str!("../../../../lab/plans/bench-cpu.toml")),
    ("bench-single", include_str!("../../../../lab/plans/bench-single.toml")),
    ("bench-limits", include_str!("../../../../lab/plans/bench-limits.toml")),
    ("bench-connections", include_str!("../../../../lab/plans/bench-connections.toml")),
    ("bench-overload", include_str!("../../../../lab/plans/bench-overload.toml")),
    ("bench-compaction", include_str!("../../../../lab/plans/bench-compaction.toml")),
    ("bench-slow-store", include_str!("../../../../lab/plans/bench-slow-store.toml")),
    ("bench-load", include_str!("../../../../lab/plans/bench-load.toml")),
    ("bench-profiler", include_str!("../../../../lab/plans/bench-profiler.toml")),
    ("causes", include_str!("../../../../lab/plans/causes.toml")),
];

/// A plan that comes with the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Its name: that of the file without `.toml`.
    pub name: &'static str,
    /// What it says of itself in one line.
    pub title: &'static str,
    /// Its text.
    pub text: &'static str,
}

/// All shipped plans.
pub fn shipped() -> &'static [Shipped] {
    static SHIPPED: LazyLock<Vec<Shipped>> = LazyLock::new(|| {
        PLANS.map(|(name, text)| Shipped { name, title: title(text), text }).to_vec()
    });
    &SHIPPED
}

/// The title in a text.
fn title(text: &'static str) -> &'static str {
    let line = text.lines().find_map(|line| line.strip_prefix("title = \""));
    line.unwrap_or_default().trim_end_matches('"')
}

impl Plan {
    /// Opens the plan that a user names: a file with `.toml` at its end, or the name of a shipped
    /// plan. A file of `lab/plans` in the working directory goes before the one compiled in.
    ///
    /// # Errors
    /// Every problem of the file, or that there is no such plan.
    pub fn open(name: &str) -> Result<Plan, Problems> {
        if Path::new(name).extension().is_some_and(|end| end == "toml") {
            return Plan::read(Path::new(name));
        }
        let path: PathBuf = Path::new(DIR).join(name).with_extension("toml");
        if let Ok(text) = host::read_text(&path) {
            return Plan::parse(&text, &path);
        }
        if let Some((_, text)) = PLANS.iter().find(|(known, _)| *known == name) {
            // Without a copy of the source, relative paths start in the working directory.
            return Plan::parse(text, &Path::new(name).with_extension("toml"));
        }
        let known = PLANS.map(|(known, _)| known);
        let hint = match nearest(name, &known) {
            Some(likely) => format!("did you mean `{likely}`?"),
            None => format!("write a file such as plan.toml, or one of {}", listed(&known)),
        };
        let sentence = format!("there is no such plan: {hint}");
        Err(Problems {
            path: PathBuf::from(name),
            problems: vec![Problem { place: None, sentence }],
        })
    }
}
