//! The command line of `compare`.

use crate::engine::Kind;
use crate::workloads::{self, Workload};
use std::path::PathBuf;

pub(crate) struct Settings {
    pub(crate) engines: Vec<Kind>,
    pub(crate) workloads: Vec<&'static Workload>,
    pub(crate) rounds: u64,
    pub(crate) records: u64,
    /// Operations a second of every workload; as many as the engine takes if it is not set.
    pub(crate) rate: Option<u64>,
    /// The block cache of the peers.
    pub(crate) cache_bytes: u64,
    pub(crate) seed: u64,
    /// How often a disturbed run is repeated.
    pub(crate) retries: u64,
    pub(crate) data_dir: PathBuf,
    /// A control group that limits the memory of workloads that are short of it.
    pub(crate) memory_group: Option<PathBuf>,
    pub(crate) out: PathBuf,
    /// Results to show instead of measuring.
    pub(crate) from: Vec<PathBuf>,
    pub(crate) check: bool,
    pub(crate) rocksdb: PathBuf,
}

impl Settings {
    /// What Kvant is given as `--memory`: the cache and two write buffers, as the peers have.
    pub(crate) fn memory_bytes(&self) -> u64 {
        self.cache_bytes / 2 * 3
    }
}

pub(crate) fn parse(arguments: &[String]) -> Result<Settings, String> {
    let mut settings = Settings {
        engines: Kind::ALL.to_vec(),
        workloads: workloads::ALL.iter().collect(),
        rounds: 5,
        records: 2_500_000,
        rate: None,
        cache_bytes: 256 << 20,
        seed: 1,
        retries: 1,
        data_dir: std::env::temp_dir(),
        memory_group: None,
        out: "target/engines.json".into(),
        from: Vec::new(),
        check: false,
        rocksdb: std::env::var_os("KVANT_BENCH_ROCKSDB").unwrap_or_default().into(),
    };
    let mut arguments = arguments.iter();
    while let Some(option) = arguments.next() {
        if option == "--check" {
            settings.check = true;
            continue;
        }
        let value = arguments.next().ok_or_else(|| format!("{option} needs a value"))?;
        let number = || match value.parse() {
            Ok(number) if number > 0 => Ok(number),
            _ => Err(format!("{option} {value}: not a number above 0")),
        };
        let unknown = |name: &str| format!("{option}: there is no {name:?}");
        match option.as_str() {
            "--engines" => {
                let named = value.split(',').map(|name| Kind::from_name(name).ok_or(unknown(name)));
                settings.engines = named.collect::<Result<_, _>>()?;
            }
            "--workloads" => {
                let find = |name| {
                    workloads::find(name).ok_or_else(|| format!("{}:\n{}", unknown(name), known()))
                };
                settings.workloads = value.split(',').map(find).collect::<Result<_, _>>()?;
            }
            "--rounds" => settings.rounds = number()?,
            "--records" => settings.records = number()?,
            "--rate" => settings.rate = Some(number()?),
            "--cache" => settings.cache_bytes = number()? << 20,
            "--seed" => settings.seed = number()?,
            "--retries" => settings.retries = value.parse().map_err(|_| unknown(value))?,
            "--data-dir" => settings.data_dir = value.into(),
            "--memory-group" => settings.memory_group = Some(value.into()),
            "--out" => settings.out = value.into(),
            "--from" => settings.from = value.split(',').map(PathBuf::from).collect(),
            "--rocksdb" => settings.rocksdb = value.into(),
            _ => return Err(format!("no option {option:?}")),
        }
    }
    Ok(settings)
}

/// A line for each workload.
fn known() -> String {
    let line = |workload: &Workload| format!("  {:17} {}\n", workload.name, workload.about);
    workloads::ALL.iter().map(line).collect()
}
