//! Recordings as files that other programs and people read.

mod html;

pub use html::{html, html_difference};
