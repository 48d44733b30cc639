//! One self-contained HTML page a recording, or two recordings for a difference: flame graphs, heat
//! map, event lanes, tables.
//!
//! Invariants:
//! 1. The page loads nothing: its policy forbids it, and everything is inside.
//! 2. The scripts in `html/` are modules as they stand there, so that other programs can load them
//!    one by one; a page has them behind each other in the order of [`SCRIPTS`], without their
//!    imports and exports.

mod data;
mod origin;

use crate::recording::Recording;

const TEMPLATE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");

/// A script only imports from those before it.
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

/// The page of a recording. Its symbols should be resolved before; without them it shows modules
/// only.
pub fn html(recording: &Recording) -> String {
    page(&[recording])
}

/// The page that compares `other` with `base`.
pub fn html_difference(base: &Recording, other: &Recording) -> String {
    page(&[base, other])
}

fn page(recordings: &[&Recording]) -> String {
    let mut data = String::new();
    for recording in recordings {
        data.push_str("<script type=\"application/octet-stream\" class=\"recording\">");
        data.push_str(&data::encode(recording));
        data.push_str("</script>\n");
    }
    let parts = [("/*STYLE*/", STYLE), ("<!--DATA-->", &data), ("/*SCRIPT*/", &script())];
    let mut page = String::with_capacity(TEMPLATE.len() + STYLE.len() + data.len() + (128 << 10));
    let mut rest = TEMPLATE;
    for (mark, text) in parts {
        let (before, after) =
            rest.split_once(mark).expect("the template has each mark, in this order");
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page.push_str(rest);
    page
}

/// All scripts as one module.
fn script() -> String {
    let mut joined = String::new();
    for line in SCRIPTS.iter().flat_map(|script| script.lines()) {
        if line.starts_with("import ") {
            continue;
        }
        joined.push_str(line.strip_prefix("export ").unwrap_or(line));
        joined.push('\n');
    }
    joined
}

#[cfg(test)]
mod tests;
