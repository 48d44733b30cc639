//! Assertions on ratios, such as `p99 <= 1.05x`.
//!
//! `[WORKLOAD[/PHASE]: ]FIGURE <=|<|>=|> FACTORx`. Without a workload it is about each workload and
//! phase that has the figure.

use serde::{Deserialize, Serialize};

kvant_base::named_enum! {
    /// A figure of which two sides are compared; all but the rate are the better the less they are.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Figure {
        /// Median of the response time.
        P50 = "p50",
        /// 90th percentile.
        P90 = "p90",
        /// 99th percentile.
        P99 = "p99",
        /// 99.9th percentile.
        #[serde(rename = "p99.9")]
        P999 = "p99.9",
        /// The greatest response time: shown, but nothing is claimed of it.
        Max = "max",
        /// Responses per second; of a search, the highest rate that held.
        Rate = "rate",
        /// CPU time of the server a request.
        Cpu = "cpu",
        /// Bytes that the server wrote to the disk a request.
        Written = "written",
        /// Bytes that the server allocated a request, by a recording.
        Allocated = "allocated",
        /// Time that the server's threads waited a request, without idle ones, by a recording.
        Waited = "waited",
    }
}

impl Figure {
    /// Whether a greater value is the better one.
    pub fn more_is_better(self) -> bool {
        self == Figure::Rate
    }

    /// Whether differences are claimed: one request decides about a maximum.
    pub fn is_claimed(self) -> bool {
        self != Figure::Max
    }
}

kvant_base::named_enum! {
    /// What a comparison says of an assertion.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
    #[serde(rename_all = "lowercase")]
    pub enum Decision {
        /// The whole interval satisfies it.
        Holds = "holds",
        /// No value of the interval satisfies it.
        Violated = "violated",
        /// A part of the interval satisfies it, or nothing was measured.
        #[default]
        Undecided = "undecided",
    }
}

/// An assertion on the ratio of B to A.
#[derive(Clone, Debug, PartialEq)]
pub struct RatioAssertion {
    workload: Option<String>,
    phase: Option<String>,
    figure: Figure,
    /// Whether it bounds the ratio from above.
    is_upper: bool,
    factor: f64,
}

impl RatioAssertion {
    /// Parses an assertion.
    ///
    /// # Errors
    /// What is wrong, and what is expected.
    pub fn parse(text: &str) -> Result<RatioAssertion, String> {
        let (place, claim) = match text.rsplit_once(':') {
            Some((place, claim)) => (Some(place.trim()), claim),
            None => (None, text),
        };
        let wrong = |what: &str| format!("`{text}`: {what}, such as `p99 <= 1.05x`");
        let at = claim.find(['<', '>']).ok_or_else(|| wrong("write <=, <, >= or >"))?;
        let (figure, rest) = claim.split_at(at);
        let is_upper = rest.starts_with('<');
        let factor = rest[1..].trim_start_matches('=').trim();
        let factor = factor.strip_suffix('x').ok_or_else(|| wrong("write a factor with an x"))?;
        let factor =
            factor.parse::<f64>().ok().filter(|factor| *factor > 0.0 && factor.is_finite());
        let figure = Figure::from_name(figure.trim()).filter(|figure| figure.is_claimed());
        let (workload, phase) = match place.map(|place| place.split_once('/')) {
            Some(Some((workload, phase))) => (Some(workload), Some(phase)),
            Some(None) => (place, None),
            None => (None, None),
        };
        Ok(RatioAssertion {
            workload: workload.map(str::to_owned),
            phase: phase.map(str::to_owned),
            figure: figure.ok_or_else(|| {
                let all = Figure::ALL.into_iter().filter(|figure| figure.is_claimed());
                let names: Vec<&str> = all.map(Figure::name).collect();
                wrong(&format!("write one of {}", names.join(", ")))
            })?,
            is_upper,
            factor: factor.ok_or_else(|| wrong("write a factor above 0"))?,
        })
    }

    /// Whether it is about this figure.
    pub fn is_about(&self, workload: &str, phase: &str, figure: Figure) -> bool {
        let is = |wanted: &Option<String>, name: &str| {
            wanted.as_ref().is_none_or(|wanted| wanted == name)
        };
        self.figure == figure && is(&self.workload, workload) && is(&self.phase, phase)
    }

    /// What an interval of the ratio says. At the factor itself `<` and `<=` are alike: an interval
    /// has no such digits.
    pub fn check(&self, interval: Option<(f64, f64)>) -> Decision {
        let Some((low, high)) = interval else { return Decision::Undecided };
        let (holds, violated) = match self.is_upper {
            true => (high <= self.factor, low > self.factor),
            false => (low >= self.factor, high < self.factor),
        };
        match (holds, violated) {
            (true, _) => Decision::Holds,
            (_, true) => Decision::Violated,
            _ => Decision::Undecided,
        }
    }
}

#[cfg(test)]
mod tests;
