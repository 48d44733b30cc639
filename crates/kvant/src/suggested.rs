//! Suggested values of options. Options are checked together after parsing, so that all bad values
//! are reported at once.

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command};
use std::ffi::{OsStr, OsString};

/// A parser that accepts any value and suggests words to the shell's completion.
#[derive(Clone)]
pub(crate) struct Suggested(pub(crate) Vec<&'static str>);

impl TypedValueParser for Suggested {
    type Value = OsString;

    fn parse_ref(
        &self,
        _: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<OsString, clap::Error> {
        Ok(value.to_os_string())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}
