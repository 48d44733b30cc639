//! `kvant lab explain`.

use super::run::path;
use crate::commands::explain::write_page;
use crate::exit::print;
use clap::ArgMatches;
use kvant_base::{Error, ErrorKind, Result};
use kvant_lab::{analyse, explain};

/// Explains the attempts of a run: a page beside the files of each, text or JSON on standard
/// output.
///
/// # Errors
/// `Io` if a file cannot be read or written; `Invalid` if it is no run.
pub(super) fn explain(args: &ArgMatches) -> Result<()> {
    let dir = path(args, "DIR");
    let interventions = analyse::interventions(&dir)?;
    let (attempts, damaged) = analyse::evidence(&dir, args.get_one("attempt").copied())?;
    damaged.iter().for_each(|problem| crate::complain(problem));
    for attempt in &attempts {
        let effects = interventions.as_ref().map(|found| found.of_case(attempt.case));
        let explanation = explain::explain_with(&attempt.evidence, effects.unwrap_or_default());
        if args.get_flag("json") {
            let json = serde_json::to_string(&explanation)
                .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
            print(json + "\n")?;
        } else {
            print(explain::text(&explanation) + "\n")?;
        }
        write_page(&dir.join(&attempt.dir).join("explanation.html"), &explanation)?;
    }
    match attempts.is_empty() {
        true => Err(Error::invalid("no attempt has response times over time").with_file(&dir)),
        false => Ok(()),
    }
}
