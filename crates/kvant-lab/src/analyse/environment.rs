//! Machine, placement, subjects and data, as a reader needs them to judge a figure.

use super::units::{bytes, time};
use crate::model::Text;
use crate::record::{FsyncFacts, Run};

/// Names and values.
pub(super) fn environment(run: &Run) -> Vec<(Text, String)> {
    let row =
        |en: &str, ru: &str, value: String| (Text { en: en.to_owned(), ru: ru.to_owned() }, value);
    let host = &run.host;
    let cpus = |cpus: &[u32]| match cpus {
        [] => "any".to_owned(),
        cpus => cpus.iter().map(u32::to_string).collect::<Vec<_>>().join(", "),
    };
    let mut rows = vec![
        row("Plan", "План", format!("{}, CRC-32C {}", run.plan, run.plan_checksum)),
        row("Kvant", "Kvant", run.program_version.clone()),
        row("Machine", "Машина", {
            let parts = [host.name.clone(), host.cpu_model.clone(), host.kernel.clone()];
            let known = parts.into_iter().flatten().chain([format!("{} CPUs", host.cpu_count)]);
            known
                .chain(host.memory_bytes.map(|size| bytes(size as f64)))
                .collect::<Vec<_>>()
                .join(", ")
        }),
        row("CPUs of subjects", "CPU серверов", cpus(&run.server_cpus)),
        row("CPUs of the generator", "CPU генератора", cpus(&run.generator_cpus)),
        row("Repeats", "Повторы", run.repeats.to_string()),
        row("Seed", "Зерно", run.seed.to_string()),
        row("Objectives", "Цели", run.objectives.join(", ")),
    ];
    if let Some(data) = &run.data {
        let text = format!("{}, fingerprint {}", data.text, data.fingerprint);
        rows.push(row("Data", "Данные", text));
    }
    if !run.fsyncs.is_empty() {
        rows.push(row("The disk's own fsync", "fsync самого диска", fsyncs(&run.fsyncs)));
    }
    for subject in &run.subjects {
        let version = subject.version.iter().map(|version| format!(" ({version})"));
        let text = format!("{}{}", subject.command, version.collect::<String>());
        let name = format!("Subject {}", subject.name);
        rows.push(row(&name, &format!("Сервер {}", subject.name), text));
    }
    for workload in &run.workloads {
        let text = format!(
            "{}, {} connections, {} threads",
            workload.requests, workload.connection_count, workload.thread_count
        );
        let name = format!("Workload {}", workload.name);
        rows.push(row(&name, &format!("Нагрузка {}", workload.name), text));
    }
    rows
}

/// Medians over the repeats.
fn fsyncs(all: &[FsyncFacts]) -> String {
    let median = |of: fn(&FsyncFacts) -> u64| {
        let mut values: Vec<u64> = all.iter().map(of).collect();
        values.sort_unstable();
        time(values[(values.len() - 1) / 2] as f64)
    };
    format!(
        "p50 {}, p99 {}, p99.9 {}, max {}; medians of {} measurements",
        median(|one| one.p50_ns),
        median(|one| one.p99_ns),
        median(|one| one.p999_ns),
        median(|one| one.max_ns),
        all.len()
    )
}
