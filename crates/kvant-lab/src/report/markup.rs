//! Pieces of markup: escaped text, words in both languages, tables.
//!
//! Invariant: text of a report reaches a page only through [`escape`].

use crate::model::{Report, Text};
use crate::record::Case;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The page's own words: English and Russian by key.
pub(super) struct Words {
    by_key: BTreeMap<String, [String; 2]>,
}

impl Words {
    pub(super) fn new(json: &str) -> Words {
        Words { by_key: serde_json::from_str(json).expect("the table of words is such an object") }
    }

    fn find(&self, key: &str) -> Option<Text> {
        self.by_key.get(key).map(|[en, ru]| Text { en: en.clone(), ru: ru.clone() })
    }

    /// Words in both languages, as markup.
    pub(super) fn say(&self, key: &str) -> String {
        let found = self.find(key);
        both(&found.unwrap_or_else(|| panic!("words.json has no `{key}`")))
    }

    /// The name of something that plans or servers name too: those that are not known stay as they
    /// are.
    pub(super) fn name(&self, prefix: &str, name: &str) -> String {
        let found = self.find(&format!("{prefix}.{name}"));
        found.map_or_else(|| escape(name), |text| both(&text))
    }
}

/// A sentence in both languages; the style sheet shows one.
pub(super) fn both(text: &Text) -> String {
    if text.en == text.ru {
        return inline(&text.en);
    }
    format!(
        "<span lang=\"en\">{}</span><span lang=\"ru\">{}</span>",
        inline(&text.en),
        inline(&text.ru)
    )
}

/// Text with its code in backquotes.
pub(super) fn inline(text: &str) -> String {
    let mut markup = String::new();
    for (index, part) in text.split('`').enumerate() {
        let part = escape(part);
        markup += &if index % 2 == 1 { format!("<code>{part}</code>") } else { part };
    }
    markup
}

/// Text without markup.
pub(super) fn escape(text: &str) -> String {
    let mut markup = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => markup.push_str("&amp;"),
            '<' => markup.push_str("&lt;"),
            '>' => markup.push_str("&gt;"),
            '"' => markup.push_str("&quot;"),
            _ => markup.push(letter),
        }
    }
    markup
}

/// A section with its heading.
pub(super) fn section(id: &str, words: &Words, content: &str) -> String {
    format!("<section id=\"{id}\"><h2>{}</h2>\n{content}</section>\n", words.say(id))
}

/// A remark below a heading.
pub(super) fn note(key: &str, words: &Words) -> String {
    format!("<p class=\"note\">{}</p>\n", words.say(key))
}

/// A table that scrolls inside of the page. `heads`: class and markup of each column.
pub(super) fn table(class: &str, heads: &[(&str, String)], rows: &[String]) -> String {
    let mut markup = format!("<div class=\"wide {class}\" tabindex=\"0\"><table><thead><tr>");
    for (class, head) in heads {
        let _infallible = write!(markup, "<th scope=\"col\" class=\"{class}\">{head}</th>");
    }
    markup + "</tr></thead><tbody>\n" + &rows.concat() + "</tbody></table></div>\n"
}

/// The axes' names with the values of a cell, without axes that do not concern it.
pub(super) fn cell_text(report: &Report, cell: &[String]) -> String {
    let named = report.run.sweep.iter().zip(cell).filter(|(_, value)| !value.is_empty());
    let parts: Vec<String> = named.map(|(axis, value)| format!("{} {value}", axis.name)).collect();
    escape(&parts.join(", "))
}

/// A case in two lines: what and where.
pub(super) fn case_text(report: &Report, case: &Case, step: &str) -> String {
    let cell = cell_text(report, &case.cell);
    let parts = [&*escape(&case.phase), &escape(step), &cell];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    format!(
        "<b>{}</b> {}<small>{}</small>",
        escape(&case.subject),
        escape(&case.workload),
        parts.join(" \u{b7} ")
    )
}
