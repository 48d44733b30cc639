//! How many of the nodes that store a record have to answer.

use kvant_base::{Error, Result};
use scylla::statement::Consistency;

/// A number of answers, and the driver's word for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acks {
    pub(crate) count: u32,
    pub(crate) consistency: Consistency,
}

/// The least consistency with at least `ack_count` answers of `replica_count` nodes; `None`: more
/// than half.
///
/// # Errors
/// `Invalid`: fewer nodes store a record.
pub(crate) fn acks(ack_count: Option<u32>, replica_count: u32) -> Result<Acks> {
    let quorum = replica_count / 2 + 1;
    let wanted = ack_count.unwrap_or(quorum);
    let known = [
        (1, Consistency::One),
        (2, Consistency::Two),
        (3, Consistency::Three),
        (quorum, Consistency::Quorum),
        (replica_count, Consistency::All),
    ];
    // Of two words for the same count, the one that follows a change of the replication.
    let words = known.iter().rev();
    let enough = words.filter(|(count, _)| (wanted..=replica_count).contains(count));
    let least = enough.min_by_key(|(count, _)| *count);
    let &(count, consistency) = least.ok_or_else(|| {
        Error::invalid(format!(
            "{wanted} nodes cannot answer: each record is stored on {replica_count}"
        ))
    })?;
    Ok(Acks { count, consistency })
}

#[cfg(test)]
mod tests;
