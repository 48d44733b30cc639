//! Who was the limit of a phase: the generator, the server or neither; and whether its figures may be believed.

use crate::outcome::Outcome;

/// What limited a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// This program, or its machine.
    Generator,
    /// The server, or the network to it.
    Server,
    /// The plan was kept.
    Neither,
}

/// A judgement of a phase, in words that can be acted on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verdict {
    /// What limited it.
    pub bound: Bound,
    /// Whether the latencies are those of the server: the generator sent when it should have.
    pub is_valid: bool,
    /// The most important reason, without a final period; short.
    pub headline: String,
    /// Everything else worth saying, and what to do: whole sentences.
    pub sentences: Vec<String>,
}

/// Judges a phase.
pub fn judge(outcome: &Outcome) -> Verdict {
    let _unused = outcome;
    Verdict {
        bound: Bound::Neither,
        is_valid: true,
        headline: String::new(),
        sentences: Vec::new(),
    }
}

impl Bound {
    /// `generator`, `server`, `neither`: as in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Bound::Generator => "generator",
            Bound::Server => "server",
            Bound::Neither => "neither",
        }
    }
}

impl Verdict {
    /// One line: `Verdict: valid, server-bound: ...`, without a line feed.
    pub fn line(&self) -> String {
        String::new()
    }
}
