//! An experiment that made suspects happen, as data.

use super::text::Text;
use crate::explain::intervention::{Effect, Finding};
use crate::record::InterventionFacts;
use serde::{Deserialize, Serialize};

/// What making suspects happen changed.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Interventions {
    /// What was made to happen.
    pub facts: InterventionFacts,
    /// Blocks that were planned.
    pub block_count: u32,
    /// Probability that all intervals together hold the true changes.
    pub confidence: f64,
    /// Seed of the moments and of the bootstrap.
    pub seed: u64,
    /// By case, suspect, operation and percentile.
    pub effects: Vec<Effect>,
    /// Suspects that did not happen when they should: which, how often, and why the first time.
    pub failures: Vec<(String, usize, String)>,
}

impl Interventions {
    /// The effects of a case.
    pub fn of_case(&self, case: usize) -> Vec<Effect> {
        self.effects.iter().filter(|effect| effect.case == case).cloned().collect()
    }
}

/// The finding of an effect in both languages: a clause that follows the suspect's name.
pub fn finding_text(effect: &Effect) -> Text {
    let times = effect.times();
    let ru = match effect.finding() {
        Finding::Cause => {
            format!("причина, добавляет {} ({} .. {})", times[0], times[1], times[2])
        }
        Finding::Relief => {
            format!("облегчение, меняет на {} ({} .. {})", times[0], times[1], times[2])
        }
        Finding::Correlation => {
            format!("корреляция, влияние не показано; было бы видно от {}", times[3])
        }
        Finding::NoEffect => format!("влияние не показано; было бы видно от {}", times[3]),
        Finding::Unknown => "блоков или запросов мало, ничего не утверждается".to_owned(),
    };
    Text { en: effect.words(), ru }
}
