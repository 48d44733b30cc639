//! Reads values from the parsed command line and collects all problems, so that they are reported
//! together.

use super::option::Parsed;
use clap::ArgMatches;
use std::ffi::OsString;
use std::path::PathBuf;

/// The arguments of one command, and the problems met so far, each a sentence that begins with the
/// option's name.
pub(crate) struct Reader<'a> {
    args: &'a ArgMatches,
    problems: Vec<String>,
}

impl<'a> Reader<'a> {
    pub(crate) fn new(args: &'a ArgMatches) -> Reader<'a> {
        Reader { args, problems: Vec::new() }
    }

    /// Whether the option stands on the command line.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.args.value_source(id) == Some(clap::parser::ValueSource::CommandLine)
    }

    pub(crate) fn flag(&self, id: &str) -> bool {
        self.args.get_flag(id)
    }

    /// The value of a row of [`super::option`]; `None` if it is not given and has no default, or is
    /// bad.
    pub(crate) fn get<T: Clone + Send + Sync + 'static>(&mut self, id: &str) -> Option<T> {
        self.list(id).pop()
    }

    /// The value of a row with a default, which replaces a bad value.
    pub(crate) fn value<T: Clone + Send + Sync + 'static>(&mut self, id: &str) -> T {
        self.get(id).expect("the row has a default")
    }

    /// All values of a row, in their order.
    pub(crate) fn list<T: Clone + Send + Sync + 'static>(&mut self, id: &str) -> Vec<T> {
        let given = self.args.get_many::<Parsed<T>>(id).into_iter().flatten();
        let mut values = Vec::new();
        for Parsed { value, problem } in given {
            if let Some(problem) = problem {
                self.refuse(id, problem);
            }
            values.extend(value.clone());
        }
        values
    }

    pub(crate) fn path(&self, id: &str) -> Option<PathBuf> {
        self.args.get_one::<OsString>(id).map(PathBuf::from)
    }

    /// Adds a problem that concerns an option.
    pub(crate) fn refuse(&mut self, id: &str, sentence: impl std::fmt::Display) {
        let name = match id {
            "url" => "URL".to_owned(),
            "args" => "ARGS".to_owned(),
            option => format!("--{option}"),
        };
        self.problems.push(format!("{name}: {sentence}"));
    }

    pub(crate) fn refuse_given(&mut self, ids: &[&str], sentence: &str) {
        for id in ids {
            if self.has(id) {
                self.refuse(id, sentence);
            }
        }
    }

    /// `value`, unless there was a problem.
    pub(crate) fn finish<T>(self, value: T) -> Result<T, Vec<String>> {
        if self.problems.is_empty() { Ok(value) } else { Err(self.problems) }
    }
}
