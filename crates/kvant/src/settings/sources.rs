//! Reads flags, environment and file, and puts them together.

use super::check::cross_check;
use super::table::ENV_PREFIX;
use super::{Chosen, Config, DefaultValue, Host, Origin, Problem, SETTINGS, Settings};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The environment variable that names the TOML file.
pub(crate) const CONFIG_ENV: &str = "KVANT_CONFIG";

/// Everything that can carry a setting.
pub(crate) struct Sources<'a> {
    /// Flags that were given, by the name of their setting.
    pub(crate) flags: Vec<(&'static str, OsString)>,
    /// `--config`.
    pub(crate) config: Option<OsString>,
    /// The whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) read_file: &'a dyn Fn(&Path) -> io::Result<String>,
}

/// A value as one source gives it.
struct Given {
    setting: usize,
    text: String,
    origin: Origin,
}

/// The settings that follow from `sources`.
///
/// # Errors
/// Everything that is wrong with them, at least one problem.
pub(crate) fn read(sources: &Sources<'_>, host: &Host) -> Result<Config, Vec<Problem>> {
    let mut problems = Vec::new();
    let mut given = Vec::new();
    // Later values win: the weakest source comes first.
    let file = config_file(sources, &mut problems);
    if let Some((path, origin)) = &file {
        match (sources.read_file)(path) {
            Ok(text) => read_toml(path, &text, &mut given, &mut problems),
            Err(error) => problems.push(Problem {
                origin: origin.to_string(),
                sentence: format!("cannot read {}: {error}", path.display()),
            }),
        }
    }
    read_env(&sources.env, &mut given, &mut problems);
    read_flags(&sources.flags, &mut given, &mut problems);

    let mut settings = Settings::blank();
    let mut chosen: Vec<Chosen> =
        SETTINGS.iter().map(|setting| default_of(setting, &mut settings, host)).collect();
    let mut refused = vec![false; SETTINGS.len()];
    for Given { setting, text, origin } in given {
        match (SETTINGS[setting].apply)(&mut settings, &text) {
            Ok(()) => chosen[setting] = Chosen { text: Some(text), origin },
            Err(sentence) => {
                problems.push(Problem::of(SETTINGS[setting].name, &origin, sentence));
                refused[setting] = true;
            }
        }
    }
    problems.extend(cross_check(&settings, &chosen, &refused));
    if problems.is_empty() { Ok(Config { settings, chosen, file }) } else { Err(problems) }
}

fn default_of(setting: &super::Setting, settings: &mut Settings, host: &Host) -> Chosen {
    let text = match &setting.default {
        DefaultValue::Text(text) => Some((*text).to_string()),
        DefaultValue::Derived { text, .. } => Some(text(host)),
        DefaultValue::Unset(_) => None,
    };
    if let Some(text) = &text {
        (setting.apply)(settings, text)
            .expect("a default is a usable value: the table's tests apply each");
    }
    Chosen { text, origin: Origin::Default }
}

fn config_file(sources: &Sources<'_>, problems: &mut Vec<Problem>) -> Option<(PathBuf, Origin)> {
    let (path, origin) = match &sources.config {
        Some(path) => (path, Origin::Flag("config")),
        None => {
            let (_, path) = sources.env.iter().find(|(name, _)| name == CONFIG_ENV)?;
            (path, Origin::Env(CONFIG_ENV.to_string()))
        }
    };
    if path.is_empty() {
        problems.push(Problem {
            origin: origin.to_string(),
            sentence: "the path is empty".to_string(),
        });
        return None;
    }
    Some((PathBuf::from(path), origin))
}

fn read_flags(
    flags: &[(&'static str, OsString)],
    given: &mut Vec<Given>,
    problems: &mut Vec<Problem>,
) {
    for (name, value) in flags {
        let setting = find(name).expect("flags are made from the table of settings");
        push_text(setting, value, Origin::Flag(name), given, problems);
    }
}

fn read_env(env: &[(OsString, OsString)], given: &mut Vec<Given>, problems: &mut Vec<Problem>) {
    let mut ours: Vec<(String, &OsStr)> = env
        .iter()
        .map(|(name, value)| (name.to_string_lossy().into_owned(), value.as_os_str()))
        .filter(|(name, _)| name.starts_with(ENV_PREFIX) && name != CONFIG_ENV)
        .collect();
    // The environment has no order of its own: the same problems are to be listed in the same
    // order.
    ours.sort();
    for (name, value) in ours {
        match SETTINGS.iter().position(|setting| setting.env_name() == name) {
            Some(setting) => push_text(setting, value, Origin::Env(name), given, problems),
            None if is_service_link(&name, value) => {}
            None => problems.push(Problem {
                origin: Origin::Env(name).to_string(),
                sentence: "there is no such setting: see `kvant serve --help`".to_string(),
            }),
        }
    }
}

/// Whether Kubernetes makes such a variable for a service called `kvant` or `kvant-...`: every
/// container of the namespace gets them (`KVANT_SERVICE_HOST`, `KVANT_PORT=tcp://...`,
/// `KVANT_PORT_8080_TCP_ADDR`), so they say nothing about what the operator wants.
fn is_service_link(name: &str, value: &OsStr) -> bool {
    let is_link = |rest: &str| match rest.strip_prefix("PORT") {
        // A port number here is an operator who guesses, and must be told.
        Some("") => value.to_string_lossy().contains("://"),
        Some(port) => port
            .strip_prefix('_')
            .is_some_and(|port| port.starts_with(|c: char| c.is_ascii_digit())),
        None => rest == "SERVICE_HOST" || rest.starts_with("SERVICE_PORT"),
    };
    name.match_indices('_').any(|(at, _)| is_link(&name[at + 1..]))
}

fn read_toml(path: &Path, text: &str, given: &mut Vec<Given>, problems: &mut Vec<Problem>) {
    let origin_at = |at_byte: usize| {
        let line = 1 + text.bytes().take(at_byte).filter(|&b| b == b'\n').count();
        Origin::File { path: path.to_path_buf(), line }
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    if !errors.is_empty() {
        // What a parser makes of the rest of a broken file is a guess: it is not looked at.
        problems.extend(errors.iter().map(|error| Problem {
            origin: origin_at(error.span().map_or(0, |span| span.start)).to_string(),
            sentence: error.message().to_string(),
        }));
        return;
    }
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(key, _)| key.span().start);
    for (key, value) in entries {
        let (origin, name) = (origin_at(key.span().start), key.get_ref());
        let problem = |sentence: String| Problem { origin: origin.to_string(), sentence };
        let Some(setting) = find(name) else {
            problems.push(problem(no_such_key(name)));
            continue;
        };
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Boolean(on) => on.to_string(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().replace('_', ""),
            _ => {
                let sentence = "write a string, a whole number, true or false";
                problems.push(Problem::of(name, &origin, sentence.to_string()));
                continue;
            }
        };
        given.push(Given { setting, text, origin });
    }
}

fn no_such_key(name: &str) -> String {
    let likely = name.replace('_', "-").to_lowercase();
    match find(&likely) {
        Some(_) => format!("there is no setting `{name}`: did you mean `{likely}`?"),
        None if name == "config" => "`config` cannot be set in the file itself".to_string(),
        None => format!("there is no setting `{name}`: see `kvant serve --help`"),
    }
}

fn find(name: &str) -> Option<usize> {
    SETTINGS.iter().position(|setting| setting.name == name)
}

fn push_text(
    setting: usize,
    value: &OsStr,
    origin: Origin,
    given: &mut Vec<Given>,
    problems: &mut Vec<Problem>,
) {
    match value.to_str() {
        Some(text) => given.push(Given { setting, text: text.to_string(), origin }),
        None => {
            problems.push(Problem::of(
                SETTINGS[setting].name,
                &origin,
                "the value is not UTF-8".to_string(),
            ));
        }
    }
}
