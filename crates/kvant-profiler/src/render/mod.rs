//! Recordings as files for people and other programs.

mod collapsed;
mod format;
pub mod front;
mod html;
mod names;
mod pprof;
#[cfg(test)]
mod testing;

pub use collapsed::collapsed;
pub use format::Format;
pub use html::{html, html_difference};
pub use pprof::pprof;
