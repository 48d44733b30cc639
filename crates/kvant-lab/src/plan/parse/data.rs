//! `[data]`: what subjects store before the first case.

use super::values::{Defaults, connection_count, number, part, positive_time};
use crate::plan::reader::Table;
use crate::plan::{Data, Requests, Workload};
use kvant_load::units;
use kvant_load::workload::{KeyBytes, Kind, ValueBytes};

/// Keys of `[data]`.
pub(in crate::plan) const KEYS: &[&str] =
    &["keys", "key-bytes", "value-bytes", "connections", "deleted", "ttl", "seed"];

/// Connections of a fill.
const CONNECTIONS: usize = 64;

/// What a plan says of its data.
pub(super) enum Said {
    /// Nothing.
    Nothing,
    /// `data = false`: subjects store nothing.
    Empty,
    /// `[data]`.
    Data(Data),
}

impl Said {
    /// The data. If the plan says nothing, the defaults, provided that a workload reads.
    pub(super) fn or_needed(self, workloads: &[Workload], defaults: &Defaults) -> Option<Data> {
        let reads = |workload: &Workload| match &workload.requests {
            Requests::Native(config) => {
                !workload.starts_empty
                    && [Kind::Get, Kind::Delete, Kind::Range]
                        .iter()
                        .any(|kind| config.mix.has(*kind))
            }
            _ => false,
        };
        match self {
            Said::Data(data) => Some(data),
            Said::Nothing if workloads.iter().any(reads) => Some(Data {
                workload: defaults.workload.clone(),
                connection_count: CONNECTIONS,
                deleted_part: 0.0,
                ttl_s: None,
            }),
            Said::Nothing | Said::Empty => None,
        }
    }
}

/// Reads `[data]`. Workloads that do not say otherwise have its keys and values.
pub(super) fn data(plan: &Table<'_>, defaults: &mut Defaults) -> Said {
    let Some(value) = plan.value("data") else { return Said::Nothing };
    if value.is_false() {
        return Said::Empty;
    }
    let Some(table) = value.table("`data`", KEYS) else { return Said::Nothing };
    let workload = &mut defaults.workload;
    workload.key_count = table.parse("keys", units::parse_count).unwrap_or(workload.key_count);
    workload.key_bytes = table.parse("key-bytes", KeyBytes::parse).unwrap_or(workload.key_bytes);
    workload.value_bytes =
        table.parse("value-bytes", ValueBytes::parse).unwrap_or(workload.value_bytes);
    workload.seed = table.parse("seed", number).unwrap_or(workload.seed);
    for problem in workload.problems() {
        table.refuse(format!("`data`: {problem}"));
    }
    let data = Data {
        workload: workload.clone(),
        connection_count: table.parse("connections", connection_count).unwrap_or(CONNECTIONS),
        deleted_part: table.parse("deleted", part).unwrap_or(0.0),
        ttl_s: table.parse("ttl", positive_time).map(|time| time.as_secs().max(1)),
    };
    table.finish();
    Said::Data(data)
}
