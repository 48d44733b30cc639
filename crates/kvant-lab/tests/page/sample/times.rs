//! Time lines of the made-up report: events, response times and levels that depend on each other.

use super::{
    COLUMNS_PER_SECOND, Maker, RECORDING_COUNT, RECORDING_LEAD_NS, SECOND_NS, SECONDS, START_NS,
};
use super::{rate_max, text};
use kvant_lab::model::{Lane, LatencyColumn, Series, TimeLine};
use kvant_lab::record::Case;
use kvant_profiler::recording::Recording;

impl Maker {
    pub(super) fn time_line(
        &mut self,
        case: &Case,
        index: usize,
        recording: &Recording,
    ) -> TimeLine {
        let length_ns = SECONDS * SECOND_NS;
        let lanes = lanes(recording, length_ns);
        let rows_ns: Vec<u64> =
            (0..=60).map(|row| (10_000.0 * 1.26_f64.powi(row)) as u64).collect();
        let planned_per_s = 0.8 * rate_max(case);
        let factor = if case.subject == "pool" { 1.25 } else { 1.0 };
        let mut backlog = 0.0;
        let column_ns = SECOND_NS / COLUMNS_PER_SECOND;
        let columns = (0..SECONDS * COLUMNS_PER_SECOND).map(|number| {
            let start_ns = number * column_ns;
            let within = |name: &str| {
                let of_lane = lanes.iter().filter(|lane| lane.name == name);
                of_lane
                    .flat_map(|lane| &lane.spans)
                    .any(|(start, end, _)| *start < start_ns + column_ns && *end > start_ns)
            };
            self.column(
                start_ns,
                planned_per_s / COLUMNS_PER_SECOND as f64,
                &mut backlog,
                factor,
                [within("stall"), within("compaction"), within("flush")],
                &rows_ns,
            )
        });
        let columns: Vec<LatencyColumn> = columns.collect();
        TimeLine {
            case: case.id,
            attempt: case.id as u32 + 1,
            start_ns: START_NS,
            length_ns,
            series: self.series(&lanes),
            rows_ns,
            columns,
            lanes,
            recording: (index < RECORDING_COUNT)
                .then(|| format!("attempts/{:04}/profile.kprof", case.id + 1)),
        }
    }

    fn column(
        &mut self,
        start_ns: u64,
        planned: f64,
        backlog: &mut f64,
        factor: f64,
        [is_stalled, is_compacting, is_flushing]: [bool; 3],
        rows_ns: &[u64],
    ) -> LatencyColumn {
        let capacity = planned
            * if is_stalled {
                0.12
            } else if is_compacting {
                1.12
            } else {
                1.25
            };
        let done = (planned * (1.0 + 0.015 * self.noise()) + *backlog).min(capacity);
        *backlog = (*backlog + planned - done).max(0.0);
        let wait_ms = *backlog / planned * 100.0;
        let slow = if is_compacting { 1.7 } else { 1.0 } * if is_flushing { 1.4 } else { 1.0 };
        let center_ns = (0.24 * factor * slow * (1.0 + 0.04 * self.noise()) + wait_ms) * 1e6;
        let spread = if is_stalled { 0.7 } else { 0.42 };
        // The share of values below: a logistic distribution of logarithms, and a tail.
        let below = |ns: f64| {
            let logistic =
                |center: f64, width: f64| 1.0 / (1.0 + (-(ns / center).ln() / width).exp());
            0.985 * logistic(center_ns, spread * 0.55) + 0.015 * logistic(center_ns * 5.5, spread)
        };
        let mut counts = Vec::new();
        let mut carried = 0.5 + 0.5 * self.noise();
        for (row, bounds) in rows_ns.windows(2).enumerate() {
            carried += done * (below(bounds[1] as f64) - below(bounds[0] as f64));
            if carried >= 1.0 {
                counts.push((row as u32, carried as u64));
                carried -= carried.floor();
            }
        }
        let completed: u64 = counts.iter().map(|(_, count)| count).sum();
        let quantile = |part: f64| {
            let mut sum = 0;
            let found = counts.iter().find(|(_, count)| {
                sum += count;
                sum as f64 >= part * completed as f64
            });
            found.map_or(0, |(row, _)| rows_ns[*row as usize + 1])
        };
        LatencyColumn {
            start_ns,
            end_ns: start_ns + SECOND_NS / COLUMNS_PER_SECOND,
            completed,
            planned,
            backlog: backlog.round(),
            errors: f64::from(u8::from(is_stalled && self.rng.one_in(3)) * 4),
            p50_ns: quantile(0.5),
            p99_ns: quantile(0.99),
            max_ns: quantile(1.0),
            counts,
        }
    }

    fn series(&mut self, lanes: &[Lane]) -> Vec<Series> {
        let during = |name: &str, at_ns: u64| {
            let of_lane = lanes.iter().filter(|lane| lane.name == name);
            of_lane
                .flat_map(|lane| &lane.spans)
                .any(|(start, end, _)| (*start..*end).contains(&at_ns))
        };
        let mut level = 12.0;
        let mut tables: f64 = 2.0;
        let mut debt: f64 = 40.0;
        let mut rows: [Vec<(u64, f64)>; 7] = Default::default();
        for step in 0..SECONDS * 4 {
            let at_ns = step * SECOND_NS / 4;
            let (flush, compaction) = (during("flush", at_ns), during("compaction", at_ns));
            level = if flush { f64::max(level - 30.0, 4.0) } else { level + 1.9 };
            tables = if compaction {
                f64::max(tables - 0.4, 1.0)
            } else if flush {
                tables + 0.8
            } else {
                tables
            };
            debt = if compaction { f64::max(debt - 9.0, 0.0) } else { debt + 2.2 };
            let cpu = 1.35 + 0.1 * self.noise() + if compaction { 0.45 } else { 0.0 };
            let mib = f64::from(1 << 20);
            let values = [
                cpu / 2.0,
                (260.0 + level + 3.0 * self.noise()) * mib,
                (if compaction {
                    148.0
                } else if flush {
                    96.0
                } else {
                    21.0
                } + 6.0 * self.noise())
                    * mib,
                level * mib,
                tables.round(),
                debt * mib,
                0.41 + 0.03 * self.noise(),
            ];
            for (row, value) in rows.iter_mut().zip(values) {
                row.push((at_ns, value));
            }
        }
        let names = [
            ("server_cpu", text("server's CPUs", "процессоры сервера"), "part"),
            ("memory", text("server's memory", "память сервера"), "bytes"),
            ("disk_written", text("written to disk", "запись на диск"), "bytes/s"),
            ("memtable_bytes", text("memtables", "таблицы в памяти"), "bytes"),
            ("l0_tables", text("tables in level 0", "таблицы уровня 0"), ""),
            ("debt_bytes", text("compaction debt", "долг слияния"), "bytes"),
            ("generator_cpu", text("generator's CPUs", "процессоры генератора"), "part"),
        ];
        let series = names.into_iter().zip(rows).map(|((name, title, unit), points)| Series {
            name: name.to_owned(),
            title,
            unit: unit.to_owned(),
            points,
        });
        series.collect()
    }
}

/// The events of a recording, on the time line's axis.
fn lanes(recording: &Recording, length_ns: u64) -> Vec<Lane> {
    let lane = |name: &str| Lane {
        name: name.to_owned(),
        spans: recording
            .spans
            .iter()
            .filter(|span| span.kind == name)
            .map(|span| {
                let end_ns = span.end_ns.unwrap_or(u64::MAX).min(length_ns + RECORDING_LEAD_NS);
                let words: Vec<String> =
                    span.fields.iter().map(|(name, value)| format!("{name} {value}")).collect();
                let shifted = |ns: u64| ns.saturating_sub(RECORDING_LEAD_NS);
                (shifted(span.start_ns), shifted(end_ns), words.join(", "))
            })
            .collect(),
    };
    let mut lanes: Vec<Lane> = ["flush", "compaction", "stall", "fsync"].map(lane).into();
    lanes.push(Lane {
        name: "stolen".to_owned(),
        spans: vec![(41 * SECOND_NS, 41 * SECOND_NS + 180_000_000, "12 ms stolen".to_owned())],
    });
    lanes
}
