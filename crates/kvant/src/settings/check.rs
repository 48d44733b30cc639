//! Checks of several settings together, and the engine's checks.

use super::{Chosen, Engine, Origin, SETTINGS, Settings, problem};
use kvant_base::{limits, size};
use kvant_engine::Compression;

/// Problems of the settings in combination. A setting whose own value was rejected takes part in
/// no check: its place holds another value than the intended one.
pub(crate) fn cross_check(settings: &Settings, chosen: &[Chosen], refused: &[bool]) -> Vec<String> {
    let origin = |name: &str| -> Option<&Origin> {
        let at = SETTINGS
            .iter()
            .position(|setting| setting.name == name)
            .expect("checks name settings of the table");
        (!refused[at]).then(|| &chosen[at].origin)
    };
    let mut problems = Vec::new();
    let mut refuse = |name: &str, origin: &Origin, sentence: String| {
        problems.push(problem(name, origin, &sentence));
    };
    let server = &settings.server;

    let listeners = [("listen", Some(server.listen)), ("admin-listen", server.admin_listen)];
    for (name, addr) in listeners {
        let (Some(addr), Some(from), Some(_)) = (addr, origin(name), origin("insecure")) else {
            continue;
        };
        if !settings.insecure && !addr.ip().to_canonical().is_loopback() {
            let sentence = format!(
                "{addr} is not a loopback address, and there are no credentials: any client that reaches it can \
                 change everything; set --insecure to allow that"
            );
            refuse(name, from, sentence);
        }
    }
    if let (Some(_), Some(from)) = (origin("listen"), origin("admin-listen"))
        && server.admin_listen == Some(server.listen)
        && server.listen.port() != 0
    {
        let sentence =
            format!("{} is the address of listen: leave it out to share it", server.listen);
        refuse("admin-listen", from, sentence);
    }

    if let (Some(_), Some(from), Some(dir)) =
        (origin("data"), origin("checkpoints"), &settings.checkpoints)
        && dir.starts_with(&settings.data)
    {
        let sentence = format!(
            "{} lies in the data directory: name another on the same file system",
            dir.display()
        );
        refuse("checkpoints", from, sentence);
    }

    if let Some(from) = origin("selector-cpus")
        && let Some(sentence) = kvant_server::cpus_problem(&server.selector_cpus)
    {
        refuse("selector-cpus", from, sentence);
    }

    for (name, other, is_alone) in [
        ("cluster-user", "cluster-password-file", settings.cluster.user.is_some()),
        ("cluster-password-file", "cluster-user", settings.cluster.password_file.is_some()),
    ] {
        if let (Some(from), Some(Origin::Default)) = (origin(name), origin(other))
            && is_alone
        {
            refuse(name, from, format!("needs --{other} as well"));
        }
    }

    if let (Some(_), Some(from)) = (origin("engine"), origin("compression"))
        && settings.engine == Engine::LevelDb
        && settings.compression != Compression::None
        && *from != Origin::Default
    {
        let sentence = "the engine `leveldb` compresses with Snappy, or not at all: leave the setting out, or \
                        set `none`";
        refuse("compression", from, sentence.to_string());
    }

    let (Some(memory_from), Some(value_from), Some(_)) =
        (origin("memory"), origin("value-bytes-max"), origin("sync"))
    else {
        return problems;
    };
    let value_bytes_limit = (settings.memory_bytes / 4).min(limits::VALUE_BYTES_MAX_LIMIT);
    if server.value_bytes_max > value_bytes_limit {
        let sentence = format!(
            "{} is more than {}, a quarter of the memory ({}, {memory_from}) or 1GiB, whichever is less",
            size::format(server.value_bytes_max),
            size::format(value_bytes_limit),
            size::format(settings.memory_bytes),
        );
        refuse("value-bytes-max", value_from, sentence);
    } else {
        for sentence in settings.engine_options().problems() {
            refuse("memory", memory_from, sentence);
        }
    }
    problems
}
