//! How a plan is run.

use kvant_env::host::procfs::ProcFs;
use std::path::PathBuf;

/// How a plan is run.
#[derive(Clone, Debug)]
pub struct Options {
    /// The run directory.
    pub dir: PathBuf,
    /// Whether `dir` holds the run to continue.
    pub resumes: bool,
    /// Where the directory of the temporary stores is made; `None`: in the run directory.
    pub scratch: Option<PathBuf>,
    /// The program of subjects of the kind Kvant that name none.
    pub program: PathBuf,
    /// The kernel's account.
    pub proc: ProcFs,
}
