//! Facts of an experiment that asks what faster stages would bring.

use kvant_base::dilation;
use kvant_base::tag::Stage;
use serde::{Deserialize, Serialize};

/// Which stages are sped up, and by how much.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WhatIfFacts {
    /// Each has a case of its own.
    pub stages: Vec<Stage>,
    /// Per cent of its time that a stage is spared, ascending; each has a phase in each attempt,
    /// beside one without any.
    pub percents: Vec<u32>,
}

/// A phase in which all stages but one were slowed down.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpedUp {
    /// Per cent of its time that the one is spared; 0: nothing is slowed down.
    pub percent: u32,
    /// How much slower all others are. Times of the phase are to be divided by it.
    pub factor: f64,
    /// Why it is no measurement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl SpedUp {
    /// A phase in which a stage is spared so many per cent, less than 100.
    pub fn by(percent: u32) -> SpedUp {
        let parts = SpedUp::added_parts(percent);
        let factor = 1.0 + f64::from(parts) / f64::from(dilation::UNIT);
        SpedUp { percent, factor, problem: None }
    }

    /// What is added to each other stage, in parts of what it takes: those of a server are whole.
    fn added_parts(percent: u32) -> u32 {
        let part = f64::from(percent) / f64::from(100 - percent);
        (part * f64::from(dilation::UNIT)).round() as u32
    }

    /// What is added to each other stage, in per cent of what it takes.
    pub fn added_percent(&self) -> f64 {
        f64::from(SpedUp::added_parts(self.percent)) * 100.0 / f64::from(dilation::UNIT)
    }

    /// Its name among the phases of an attempt.
    pub fn label(&self) -> String {
        match self.percent {
            0 => "as it is".to_owned(),
            percent => format!("-{percent} %"),
        }
    }
}
