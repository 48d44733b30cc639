//! The report of a run: `report.html`, `report.md` and `report.json` in its directory, of a
//! comparison also `comparison.json` and pages of differences, and its figures on standard output.

use super::summary;
use crate::exit::print;
use kvant_base::{Error, ErrorKind, Result};
use kvant_env::host;
use kvant_lab::comparison::assertion::Decision;
use kvant_lab::model::Sides;
use kvant_lab::report::Language;
use kvant_lab::{analyse, markdown, report};
use kvant_profiler::recording;
use kvant_profiler::render::html_difference;
use std::io;
use std::path::Path;

/// An assertion is violated, as of `kvant load`.
const EXIT_VIOLATED: u8 = 3;
/// An assertion is undecided: the blocks do not tell.
const EXIT_UNDECIDED: u8 = 4;

/// Writes the report of the run in `dir`. The author's notes in an earlier `report.md` are kept.
/// Returns the exit code by the assertions of a comparison; it is 0 for other runs.
///
/// # Errors
/// `Io` if a file cannot be read or written; `Invalid` if it is no run.
pub(super) fn write_report(dir: &Path, language: Language) -> Result<u8> {
    let found = analyse::analyse(dir)?;
    // First, so that a full disk leaves the figures at least.
    print(summary::text(&found, language))?;
    // An earlier report may have the author's notes.
    let write = |name: &str, text: &str| {
        let path = dir.join(name);
        host::replace_file(&path, text.as_bytes()).map_err(|error| Error::io("write", &path, error))
    };
    let json = serde_json::to_string(&found)
        .map_err(|error| Error::new(ErrorKind::Invalid, error.to_string()))?;
    write("report.json", &(json + "\n"))?;
    let old = match host::read_text(&dir.join("report.md")) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => None,
        text => Some(text.map_err(|error| Error::io("read", &dir.join("report.md"), error))?),
    };
    if let Some(old) = old.as_deref().filter(|old| !markdown::has_notes(old)) {
        // Somebody has written it, or removed the marks: all of it may be notes.
        let name = free_name(dir);
        write(&name, old)?;
        crate::complain(&format!("report.md has no place for notes: it is kept as {name}"));
    }
    write("report.md", &markdown::markdown(&found, language, old.as_deref()))?;
    // The analysis has read these recordings already: what it could not read is an error there.
    let open = |name: &str| recording::decode(&host::read_bytes(&dir.join(name)).ok()?).ok();
    write("report.html", &report::html(&found, &open, language))?;
    if let Some(sides) = &found.sides {
        write("comparison.json", &report::comparison_json(sides))?;
        for pair in &sides.flames {
            if let (Some(a), Some(b)) = (open(&pair.a), open(&pair.b)) {
                write(&pair.page, &html_difference(&a, &b, pair.rates_per_s))?;
            }
        }
    }
    print(format!("Report: {}\n", dir.join("report.html").display()))?;
    Ok(match found.sides.as_ref().map(Sides::decision) {
        None | Some(Decision::Holds) => 0,
        Some(Decision::Violated) => EXIT_VIOLATED,
        Some(Decision::Undecided) => EXIT_UNDECIDED,
    })
}

/// A name for an earlier `report.md` that no file has.
fn free_name(dir: &Path) -> String {
    let names = (1..).map(|number| match number {
        1 => "report.md.old".to_owned(),
        number => format!("report.md.old{number}"),
    });
    let mut free = names.filter(|name| !host::is_file(&dir.join(name)));
    free.next().expect("a directory has fewer files than there are numbers")
}
