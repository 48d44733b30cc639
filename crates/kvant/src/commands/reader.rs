//! Takes values out of the parsed command line and collects what is wrong with them, so that all of
//! it is said at once.

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

    /// Whether a flag is on.
    pub(crate) fn flag(&self, id: &str) -> bool {
        self.args.get_flag(id)
    }

    /// The value of an option; `None` where it is not given or wrong.
    pub(crate) fn optional<T>(
        &mut self,
        id: &str,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let raw = self.args.get_one::<OsString>(id)?;
        self.parsed(id, raw, parse)
    }

    /// The value of an option, or `default` where it is not given.
    pub(crate) fn value<T>(
        &mut self,
        id: &str,
        default: T,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> T {
        self.optional(id, parse).unwrap_or(default)
    }

    /// All values of an option, or of what has no option, in their order.
    pub(crate) fn all<T>(&mut self, id: &str, parse: impl Fn(&str) -> Result<T, String>) -> Vec<T> {
        let raws = self.args.get_many::<OsString>(id).into_iter().flatten();
        raws.filter_map(|raw| self.parsed(id, raw, &parse)).collect()
    }

    /// The name of a file.
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

    /// Refuses each of `ids` that is given.
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

    fn parsed<T>(
        &mut self,
        id: &str,
        raw: &OsString,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Option<T> {
        let parsed = match raw.to_str() {
            Some(text) => parse(text),
            None => Err(format!("`{}` is not UTF-8", raw.to_string_lossy())),
        };
        match parsed {
            Ok(value) => Some(value),
            Err(sentence) => {
                self.refuse(id, sentence);
                None
            }
        }
    }
}
