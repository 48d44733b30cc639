//! One self-contained HTML page for a recording, or for two recordings to compare: flame graphs,
//! heat map, event lanes, tables.
//!
//! Invariant: the page loads nothing. Everything is inside, and its content security policy forbids
//! it.

use super::front;
use crate::recording::Recording;

const TEMPLATE: &str = include_str!("html/page.html");
const STYLE: &str = include_str!("html/style.css");

/// The page's own scripts. A script imports only from those before it.
const SCRIPTS: &[&str] = &[
    include_str!("html/facts.js"),
    include_str!("html/words.js"),
    include_str!("html/tools.js"),
    include_str!("html/help.js"),
    include_str!("html/main.js"),
];

/// The page of a recording. Without symbols it names modules instead of functions.
pub fn html(recording: &Recording) -> String {
    page(&[recording], None)
}

/// The page that compares `other` with `base`. With the requests per second of each it compares
/// amounts per request first.
pub fn html_difference(
    base: &Recording,
    other: &Recording,
    rates_per_s: Option<[f64; 2]>,
) -> String {
    page(&[base, other], rates_per_s)
}

fn page(recordings: &[&Recording], rates_per_s: Option<[f64; 2]>) -> String {
    let mut data: String = recordings
        .iter()
        .map(|recording| {
            format!(
                "<script type=\"application/octet-stream\" class=\"recording\">{}</script>\n",
                front::encode(recording)
            )
        })
        .collect();
    if let Some([base, other]) = rates_per_s {
        data +=
            &format!("<script type=\"application/json\" id=\"rates\">[{base},{other}]</script>\n");
    }
    let style = [front::STYLE, STYLE].concat();
    let parts = [("/*STYLE*/", &*style), ("<!--DATA-->", &data), ("/*SCRIPT*/", &script())];
    front::fill(TEMPLATE, &parts)
}

/// All scripts as one module.
fn script() -> String {
    front::concatenate(&[front::SCRIPTS, SCRIPTS])
}

#[cfg(test)]
mod tests;
