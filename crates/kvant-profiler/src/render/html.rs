//! One self-contained HTML page for a recording, or for two recordings to compare: flame graphs,
//! heat map, event lanes, tables.
//!
//! Invariants:
//! 1. The page loads nothing: everything is inside, and its content security policy forbids it.
//! 2. The scripts in `html/` are JavaScript modules, which tests load one by one. A page contains
//!    them concatenated in the order of [`SCRIPTS`], without their imports and exports.

mod data;
mod origin;

use crate::recording::Recording;

const TEMPLATE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");

/// A script imports only from those before it.
const SCRIPTS: &[&str] = &[
    include_str!("html/data.js"),
    include_str!("html/format.js"),
    include_str!("html/fold.js"),
    include_str!("html/search.js"),
    include_str!("html/tree.js"),
    include_str!("html/colors.js"),
    include_str!("html/controls.js"),
    include_str!("html/flame.js"),
    include_str!("html/heat.js"),
    include_str!("html/lanes.js"),
    include_str!("html/meaning.js"),
    include_str!("html/table.js"),
    include_str!("html/facts.js"),
    include_str!("html/words.js"),
    include_str!("html/tools.js"),
    include_str!("html/help.js"),
    include_str!("html/main.js"),
];

/// The page of a recording. Without symbols it names modules instead of functions.
pub fn html(recording: &Recording) -> String {
    page(&[recording])
}

/// The page that compares `other` with `base`.
pub fn html_difference(base: &Recording, other: &Recording) -> String {
    page(&[base, other])
}

fn page(recordings: &[&Recording]) -> String {
    let data: String = recordings
        .iter()
        .map(|recording| {
            format!(
                "<script type=\"application/octet-stream\" class=\"recording\">{}</script>\n",
                data::encode(recording)
            )
        })
        .collect();
    let mut page = String::new();
    let mut rest = TEMPLATE;
    for (mark, text) in [("/*STYLE*/", STYLE), ("<!--DATA-->", &data), ("/*SCRIPT*/", &script())] {
        let (before, after) =
            rest.split_once(mark).expect("the template has each mark, in this order");
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page + rest
}

/// All scripts as one module.
fn script() -> String {
    let lines = SCRIPTS.iter().flat_map(|script| script.lines());
    let lines = lines.filter(|line| !line.starts_with("import "));
    lines.flat_map(|line| [line.strip_prefix("export ").unwrap_or(line), "\n"]).collect()
}

#[cfg(test)]
mod tests;
