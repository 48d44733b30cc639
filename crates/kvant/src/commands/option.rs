//! One row an option: name, form of the value, default, help and parser stand together.
//!
//! A bad value does not end the parsing of the command line. clap keeps what the row's parser
//! returned, and the [reader](super::reader) reports all bad values together.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, ArgAction, Command, ValueHint, value_parser};
use std::ffi::{OsStr, OsString};

/// Reads the value of an option; the error is a sentence.
pub(crate) type Parse<T> = fn(&str) -> Result<T, String>;

/// What a row's parser returned.
#[derive(Clone)]
pub(super) struct Parsed<T> {
    /// The value; if it is bad, the default, if there is one.
    pub(super) value: Option<T>,
    pub(super) problem: Option<String>,
}

#[derive(Clone)]
struct Parser<T> {
    parse: Parse<T>,
    /// Empty: none.
    default: &'static str,
    /// What the shell completes.
    words: Vec<&'static str>,
}

impl<T: Clone + Send + Sync + 'static> TypedValueParser for Parser<T> {
    type Value = Parsed<T>;

    fn parse_ref(
        &self,
        _: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<Parsed<T>, clap::Error> {
        let parsed = match value.to_str() {
            Some(text) => (self.parse)(text),
            None => Err(format!("`{}` is not UTF-8", value.to_string_lossy())),
        };
        Ok(match parsed {
            Ok(value) => Parsed { value: Some(value), problem: None },
            Err(problem) => {
                Parsed { value: (self.parse)(self.default).ok(), problem: Some(problem) }
            }
        })
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        let words = self.words.iter().map(PossibleValue::new);
        (!self.words.is_empty()).then(|| -> Box<dyn Iterator<Item = _> + '_> { Box::new(words) })
    }
}

/// Completes the help of a row.
pub(crate) trait About {
    /// Puts `text` before the default.
    fn about(self, text: &str) -> Arg;
}

impl About for Arg {
    fn about(self, text: &str) -> Arg {
        let default = self.get_help().map(ToString::to_string).unwrap_or_default();
        self.help(format!("{text}{default}"))
    }
}

pub(crate) fn argument<T: Clone + Send + Sync + 'static>(
    id: &'static str,
    value: &'static str,
    parse: Parse<T>,
) -> Arg {
    let parser = Parser { parse, default: "", words: Vec::new() };
    Arg::new(id).value_name(value).value_parser(parser)
}

/// An option with a value. `default` is empty, a value, or a value, one of `,;:`, a space and a
/// remark for the help.
pub(crate) fn option<T: Clone + Send + Sync + 'static>(
    id: &'static str,
    value: &'static str,
    default: &'static str,
    parse: Parse<T>,
) -> Arg {
    words(id, &[], default, parse).value_name(value)
}

/// An option whose words the shell completes.
pub(crate) fn words<T: Clone + Send + Sync + 'static>(
    id: &'static str,
    words: &[&'static str],
    default: &'static str,
    parse: Parse<T>,
) -> Arg {
    let default_value = match default.find(' ') {
        Some(space) => &default[..space - 1],
        None => default,
    };
    let parser = Parser { parse, default: default_value, words: words.to_vec() };
    let arg = Arg::new(id).long(id).value_name(words.join("|")).value_parser(parser);
    let arg = arg.hide_possible_values(true).hide_default_value(true);
    match default {
        "" => arg,
        _ => arg.default_value(default_value).help(format!(" [default: {default}]")),
    }
}

/// An option with the name of a file, in any encoding.
pub(crate) fn file(id: &'static str) -> Arg {
    let arg = Arg::new(id).long(id).value_name("FILE").value_parser(value_parser!(OsString));
    arg.value_hint(ValueHint::FilePath)
}

/// An option without a value.
pub(crate) fn flag(id: &'static str) -> Arg {
    Arg::new(id).long(id).action(ArgAction::SetTrue)
}
