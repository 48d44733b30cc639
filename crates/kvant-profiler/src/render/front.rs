//! The front-end library: what pages with recordings are made of, the profiler's and others.
//!
//! Invariants:
//! 1. The files in `front/` and those of pages are JavaScript modules. A page contains them
//!    concatenated, without their imports and exports, so their names are distinct.
//! 2. Nothing here loads anything.

mod data;
mod origin;

pub use data::encode;

/// Colours, controls, tables, maps; a page adds its own rules behind them.
pub const STYLE: &str = include_str!("front/style.css");

/// The modules. Each imports only from those before it; modules of a page follow.
pub const SCRIPTS: &[&str] = &[
    include_str!("front/data.js"),
    include_str!("front/phrase.js"),
    include_str!("front/format.js"),
    include_str!("front/fold.js"),
    include_str!("front/search.js"),
    include_str!("front/tree.js"),
    include_str!("front/colors.js"),
    include_str!("front/controls.js"),
    include_str!("front/flame.js"),
    include_str!("front/heat.js"),
    include_str!("front/lanes.js"),
    include_str!("front/meaning.js"),
    include_str!("front/table.js"),
];

/// Several modules as one: without the lines that import, and without the word `export`.
pub fn concatenate(scripts: &[&[&str]]) -> String {
    let lines = scripts.iter().copied().flatten().flat_map(|script| script.lines());
    let lines = lines.filter(|line| !line.starts_with("import "));
    lines.flat_map(|line| [line.strip_prefix("export ").unwrap_or(line), "\n"]).collect()
}

/// A template with the text of each part in place of its mark.
///
/// # Panics
/// If the template does not have each mark, in the order of the parts.
pub fn fill(template: &str, parts: &[(&str, &str)]) -> String {
    let mut page = String::new();
    let mut rest = template;
    for (mark, text) in parts {
        let (before, after) =
            rest.split_once(mark).expect("the template has each mark, in this order");
        page.push_str(before);
        page.push_str(text);
        rest = after;
    }
    page + rest
}
