//! Sentences of a report.

use serde::{Deserialize, Serialize};

/// A sentence in both languages.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Text {
    /// English.
    pub en: String,
    /// Russian.
    pub ru: String,
}
