//! TOML values with their places: typed getters that collect problems instead of stopping.
//!
//! Invariants:
//! 1. A key that no getter took is a problem: it is unknown, or has no effect beside the others.
//! 2. Entries of a table are in the order of the text.

use super::problem::{Problem, place};
use std::cell::{Cell, RefCell};
use std::ops::Range;
use toml::de::{DeTable, DeValue};

/// The problems found so far.
#[derive(Debug, Default)]
pub(super) struct Report {
    found: RefCell<Vec<(usize, String)>>,
}

impl Report {
    /// Adds a problem at a byte offset.
    pub(super) fn refuse(&self, at_bytes: usize, sentence: impl Into<String>) {
        self.found.borrow_mut().push((at_bytes, sentence.into()));
    }

    /// The problems in the order of the text.
    pub(super) fn into_problems(self, text: &str) -> Vec<Problem> {
        let mut found = self.found.into_inner();
        found.sort();
        found.dedup();
        let problem = |(at, sentence)| Problem { place: Some(place(text, at)), sentence };
        found.into_iter().map(problem).collect()
    }
}

/// A value.
#[derive(Clone, Copy, Debug)]
pub(super) struct Value<'a> {
    report: &'a Report,
    value: &'a DeValue<'a>,
    /// Its first byte.
    pub(super) at: usize,
}

impl<'a> Value<'a> {
    /// Adds a problem at this value.
    pub(super) fn refuse(&self, sentence: impl Into<String>) {
        self.report.refuse(self.at, sentence);
    }

    /// Adds a problem elsewhere.
    pub(super) fn refuse_at(&self, at_bytes: usize, sentence: impl Into<String>) {
        self.report.refuse(at_bytes, sentence);
    }

    /// A string, number or boolean as text.
    fn scalar(&self) -> Option<String> {
        match self.value {
            DeValue::String(text) => Some(text.to_string()),
            DeValue::Boolean(on) => Some(on.to_string()),
            DeValue::Integer(number) if number.radix() == 10 => {
                Some(number.as_str().replace('_', ""))
            }
            DeValue::Float(number) => Some(number.as_str().replace('_', "")),
            _ => None,
        }
    }

    /// Its text, if it is a string.
    pub(super) fn as_text(&self) -> Option<&'a str> {
        match self.value {
            DeValue::String(text) => Some(text),
            _ => None,
        }
    }

    /// Whether it is `false`.
    pub(super) fn is_false(&self) -> bool {
        matches!(self.value, DeValue::Boolean(false))
    }

    /// Parses a string, number or boolean. `key` names it in problems.
    pub(super) fn parse<T, E: ToString>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        let Some(text) = self.scalar() else {
            self.refuse(format!("`{key}` is {}: write a text or a number", self.kind()));
            return None;
        };
        match parse(&text) {
            Ok(value) => Some(value),
            Err(sentence) => {
                self.refuse(format!("`{key}`: {}", sentence.to_string()));
                None
            }
        }
    }

    /// The elements of an array; the value itself if it is none.
    pub(super) fn elements(&self) -> Vec<Value<'a>> {
        let DeValue::Array(array) = self.value else { return vec![*self] };
        let element = |spanned: &'a toml::Spanned<DeValue<'a>>| Value {
            report: self.report,
            value: spanned.get_ref(),
            at: spanned.span().start,
        };
        array.iter().map(element).collect()
    }

    /// Whether it is an array.
    pub(super) fn is_array(&self) -> bool {
        matches!(self.value, DeValue::Array(_))
    }

    /// Its entries, if it is a table. `what` names it in problems.
    pub(super) fn table(&self, what: &str, keys: &'static [&'static str]) -> Option<Table<'a>> {
        match self.value {
            DeValue::Table(table) => Some(Table::new(self.report, table, self.at, what, keys)),
            _ => {
                self.refuse(format!("{what} is {}: write a table", self.kind()));
                None
            }
        }
    }

    /// A table without entries in the place of this value.
    pub(super) fn empty_table(&self, what: &str, keys: &'static [&'static str]) -> Table<'a> {
        Table { report: self.report, entries: Vec::new(), what: what.to_owned(), keys, at: self.at }
    }

    /// Names and values of a table whose keys are free.
    pub(super) fn named(&self, what: &str) -> Vec<(Name<'a>, Value<'a>)> {
        let Some(table) = self.table(what, &[]) else { return Vec::new() };
        table.entries.iter().map(|entry| (entry.name, entry.value)).collect()
    }

    /// Its kind in words.
    fn kind(&self) -> &'static str {
        match self.value {
            DeValue::String(_) => "a text",
            DeValue::Integer(_) | DeValue::Float(_) => "a number",
            DeValue::Boolean(_) => "a boolean",
            DeValue::Datetime(_) => "a date",
            DeValue::Array(_) => "an array",
            DeValue::Table(_) => "a table",
        }
    }
}

/// A key and its place.
#[derive(Clone, Copy, Debug)]
pub(super) struct Name<'a> {
    pub(super) text: &'a str,
    /// Its first byte.
    pub(super) at: usize,
}

#[derive(Debug)]
struct Entry<'a> {
    name: Name<'a>,
    value: Value<'a>,
    is_taken: Cell<bool>,
}

/// A table.
#[derive(Debug)]
pub(super) struct Table<'a> {
    report: &'a Report,
    entries: Vec<Entry<'a>>,
    what: String,
    keys: &'static [&'static str],
    /// Its first byte.
    pub(super) at: usize,
}

impl<'a> Table<'a> {
    /// A table that may have these keys.
    pub(super) fn new(
        report: &'a Report,
        table: &'a DeTable<'a>,
        at: usize,
        what: &str,
        keys: &'static [&'static str],
    ) -> Table<'a> {
        let mut entries: Vec<Entry<'a>> = table
            .iter()
            .map(|(key, value)| Entry {
                name: Name { text: key.get_ref(), at: key.span().start },
                value: Value { report, value: value.get_ref(), at: value.span().start },
                is_taken: Cell::new(false),
            })
            .collect();
        entries.sort_by_key(|entry| entry.name.at);
        Table { report, entries, what: what.to_owned(), keys, at }
    }

    /// The value of a key.
    pub(super) fn value(&self, key: &str) -> Option<Value<'a>> {
        debug_assert!(self.keys.contains(&key), "{key} is in the table's list of keys");
        let entry = self.entries.iter().find(|entry| entry.name.text == key)?;
        entry.is_taken.set(true);
        Some(entry.value)
    }

    /// Whether the key is given. Does not take it.
    pub(super) fn has(&self, key: &str) -> bool {
        self.entries.iter().any(|entry| entry.name.text == key)
    }

    /// Adds a problem at the table.
    pub(super) fn refuse(&self, sentence: impl Into<String>) {
        self.report.refuse(self.at, sentence);
    }

    /// Adds a problem elsewhere.
    pub(super) fn refuse_at(&self, at_bytes: usize, sentence: impl Into<String>) {
        self.report.refuse(at_bytes, sentence);
    }

    /// Parses the value of a key.
    pub(super) fn parse<T, E: ToString>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<T> {
        self.value(key)?.parse(key, parse)
    }

    /// The text of a key.
    pub(super) fn text(&self, key: &str) -> Option<String> {
        self.parse(key, |text| Ok::<_, String>(text.to_owned()))
    }

    /// `true` or `false`; `false` if it is not given.
    pub(super) fn flag(&self, key: &str) -> bool {
        self.switch(key).unwrap_or(false)
    }

    /// `true` or `false`, if it is given.
    pub(super) fn switch(&self, key: &str) -> Option<bool> {
        self.parse(key, |text| match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(format!("`{text}` is neither true nor false")),
        })
    }

    /// Parses each element of an array, or the only one.
    pub(super) fn list<T, E: ToString>(
        &self,
        key: &str,
        parse: impl Fn(&str) -> Result<T, E>,
    ) -> Option<Vec<T>> {
        let elements = self.value(key)?.elements();
        Some(elements.iter().filter_map(|element| element.parse(key, &parse)).collect())
    }

    /// Texts of an array, or the only one.
    pub(super) fn texts(&self, key: &str) -> Vec<String> {
        self.list(key, |text| Ok::<_, String>(text.to_owned())).unwrap_or_default()
    }

    /// A command: an array of its words, or a text that is split at blanks.
    pub(super) fn command(&self, key: &str) -> Option<Vec<String>> {
        let value = self.value(key)?;
        words(&value, key)
    }

    /// Reports the keys that no getter took.
    pub(super) fn finish(self) {
        for entry in self.entries.iter().filter(|entry| !entry.is_taken.get()) {
            let Name { text, at } = entry.name;
            let sentence = if self.keys.contains(&text) {
                format!("`{text}` has no effect on {}", self.what)
            } else {
                match nearest(text, self.keys) {
                    Some(known) => {
                        format!("{} has no key `{text}`: did you mean `{known}`?", self.what)
                    }
                    None => {
                        format!("{} has no key `{text}`: it has {}", self.what, listed(self.keys))
                    }
                }
            };
            self.report.refuse(at, sentence);
        }
    }
}

/// The words of a command: an array, or a text that is split at blanks.
pub(super) fn words(value: &Value<'_>, key: &str) -> Option<Vec<String>> {
    let words: Vec<String> = match value.as_text() {
        Some(text) => text.split_whitespace().map(str::to_owned).collect(),
        None if !value.is_array() => {
            value.refuse(format!("`{key}` is no command: write a text or an array of texts"));
            return None;
        }
        None => value
            .elements()
            .iter()
            .filter_map(|element| element.parse(key, |text| Ok::<_, String>(text.to_owned())))
            .collect(),
    };
    if words.is_empty() {
        value.refuse(format!("`{key}` is empty: it needs a program"));
        return None;
    }
    Some(words)
}

/// The known word that is most like `word`, if any is like it.
pub(super) fn nearest<'k>(word: &str, known: &[&'k str]) -> Option<&'k str> {
    let word = word.replace('_', "-").to_lowercase();
    let (distance, best) = known.iter().map(|known| (distance(&word, known), *known)).min()?;
    (distance <= 1 + word.chars().count() / 4).then_some(best)
}

/// Names between commas.
pub(super) fn listed(names: &[&str]) -> String {
    names.join(", ")
}

/// Insertions, deletions and replacements that turn one word into the other (Levenshtein, 1965).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, from) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, to) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(from != *to);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// The document, if it is TOML.
pub(super) fn document<'a>(text: &'a str, report: &Report) -> Option<toml::Spanned<DeTable<'a>>> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(0, |Range { start, .. }| start);
        report.refuse(at, format!("this is no TOML: {}", error.message()));
    }
    // The parser's guesses about a broken text would give problems that are not in it.
    errors.is_empty().then_some(table)
}
