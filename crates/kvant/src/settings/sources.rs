//! Reads flags, environment and file, and merges them.

use super::check::cross_check;
use super::table::ENV_PREFIX;
use super::{Chosen, Config, DefaultValue, Host, Origin, SETTINGS, Setting, Settings, problem};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};

/// The environment variable that names the TOML file.
pub(crate) const CONFIG_ENV: &str = "KVANT_CONFIG";

/// Everything that can contain a setting.
pub(crate) struct Sources<'a> {
    /// Flags that were given, by the name of their setting.
    pub(crate) flags: Vec<(&'static str, OsString)>,
    /// `--config`.
    pub(crate) config: Option<OsString>,
    /// The whole environment.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) read_file: &'a dyn Fn(&Path) -> io::Result<String>,
}

/// The settings that follow from `sources`, or all their problems.
pub(crate) fn read(sources: &Sources<'_>, host: &Host) -> Result<Config, Vec<String>> {
    let mut reading = Reading::default();
    // Later values win: the weakest source comes first.
    let file = reading.config_file(sources);
    reading.env(&sources.env);
    for (name, value) in &sources.flags {
        let setting = find(name).expect("flags are made from the table of settings");
        reading.push(setting, value, Origin::Flag(name));
    }

    let Reading { given, mut problems } = reading;
    let mut settings = Settings::blank();
    let mut chosen: Vec<Chosen> =
        SETTINGS.iter().map(|setting| default_of(setting, &mut settings, host)).collect();
    let mut rejected = vec![false; SETTINGS.len()];
    for Given { setting, text, origin } in given {
        match (SETTINGS[setting].apply)(&mut settings, &text) {
            Ok(()) => chosen[setting] = Chosen { text: Some(text), origin },
            Err(sentence) => {
                problems.push(problem(SETTINGS[setting].name, &origin, &sentence));
                rejected[setting] = true;
            }
        }
    }
    settings.server.checkpoints =
        settings.checkpoints.clone().unwrap_or_else(|| match settings.data.file_name() {
            Some(_) => settings.data.with_file_name("checkpoints"),
            None => settings.data.join("../checkpoints"),
        });
    problems.extend(cross_check(&settings, &chosen, &rejected));
    if problems.is_empty() { Ok(Config { settings, chosen, file }) } else { Err(problems) }
}

fn default_of(setting: &Setting, settings: &mut Settings, host: &Host) -> Chosen {
    let text = match &setting.default {
        DefaultValue::Text(text) => Some((*text).to_string()),
        DefaultValue::Derived { text, .. } => Some(text(host)),
        DefaultValue::Unset(_) => None,
    };
    if let Some(text) = &text {
        (setting.apply)(settings, text).expect("a default is valid: tests apply each");
    }
    Chosen { text, origin: Origin::Default }
}

/// A value from one source.
struct Given {
    setting: usize,
    text: String,
    origin: Origin,
}

/// The values read so far, and the problems with their sources.
#[derive(Default)]
struct Reading {
    given: Vec<Given>,
    problems: Vec<String>,
}

impl Reading {
    /// Reads the TOML file, if one is named.
    fn config_file(&mut self, sources: &Sources<'_>) -> Option<(PathBuf, Origin)> {
        let (path, origin) = match &sources.config {
            Some(path) => (path, Origin::Flag("config")),
            None => {
                let (_, path) = sources.env.iter().find(|(name, _)| name == CONFIG_ENV)?;
                (path, Origin::Env(CONFIG_ENV.to_string()))
            }
        };
        if path.is_empty() {
            self.problems.push(format!("{origin}: the path is empty"));
            return None;
        }
        let path = PathBuf::from(path);
        match (sources.read_file)(&path) {
            Ok(text) => self.toml(&path, &text),
            Err(error) => {
                self.problems.push(format!("{origin}: cannot read {}: {error}", path.display()));
            }
        }
        Some((path, origin))
    }

    fn env(&mut self, env: &[(OsString, OsString)]) {
        let mut ours: Vec<(String, &OsStr)> = env
            .iter()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.as_os_str()))
            .filter(|(name, _)| name.starts_with(ENV_PREFIX) && name != CONFIG_ENV)
            .collect();
        // The environment is unordered; problems are reported in a stable order.
        ours.sort();
        for (name, value) in ours {
            match SETTINGS.iter().position(|setting| setting.env_name() == name) {
                Some(setting) => self.push(setting, value, Origin::Env(name)),
                None if is_service_link(&name, value) => {}
                None => self.problems.push(format!(
                    "{}: there is no such setting: see `kvant serve --help`",
                    Origin::Env(name)
                )),
            }
        }
    }

    fn toml(&mut self, path: &Path, text: &str) {
        let origin_at = |at_byte: usize| {
            let line = 1 + text.bytes().take(at_byte).filter(|&b| b == b'\n').count();
            Origin::File { path: path.to_path_buf(), line }
        };
        let (table, errors) = DeTable::parse_recoverable(text);
        if !errors.is_empty() {
            // The parser only guesses the rest of a broken file: ignore it.
            self.problems.extend(errors.iter().map(|error| {
                let origin = origin_at(error.span().map_or(0, |span| span.start));
                format!("{origin}: {}", error.message())
            }));
            return;
        }
        let mut entries: Vec<_> = table.get_ref().iter().collect();
        entries.sort_by_key(|(key, _)| key.span().start);
        for (key, value) in entries {
            let (origin, name) = (origin_at(key.span().start), key.get_ref());
            let Some(setting) = find(name) else {
                self.problems.push(format!("{origin}: {}", no_such_key(name)));
                continue;
            };
            let text = match value.get_ref() {
                DeValue::String(text) => text.to_string(),
                DeValue::Boolean(on) => on.to_string(),
                DeValue::Integer(number) if number.radix() == 10 => {
                    number.as_str().replace('_', "")
                }
                _ => {
                    let sentence = "write a string, a whole number, true or false";
                    self.problems.push(problem(name, &origin, sentence));
                    continue;
                }
            };
            self.given.push(Given { setting, text, origin });
        }
    }

    fn push(&mut self, setting: usize, value: &OsStr, origin: Origin) {
        match value.to_str() {
            Some(text) => self.given.push(Given { setting, text: text.to_string(), origin }),
            None => {
                let name = SETTINGS[setting].name;
                self.problems.push(problem(name, &origin, "the value is not UTF-8"));
            }
        }
    }
}

/// Whether Kubernetes makes such a variable for a service called `kvant` or `kvant-...`. Every
/// container of the namespace gets them (`KVANT_SERVICE_HOST`, `KVANT_PORT=tcp://...`,
/// `KVANT_PORT_8080_TCP_ADDR`), so they do not express the operator's intent.
fn is_service_link(name: &str, value: &OsStr) -> bool {
    let is_link = |rest: &str| match rest.strip_prefix("PORT") {
        // A plain port number comes from an operator who guesses the name: report it.
        Some("") => value.to_string_lossy().contains("://"),
        Some(port) => port
            .strip_prefix('_')
            .is_some_and(|port| port.starts_with(|c: char| c.is_ascii_digit())),
        None => rest == "SERVICE_HOST" || rest.starts_with("SERVICE_PORT"),
    };
    name.match_indices('_').any(|(at, _)| is_link(&name[at + 1..]))
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
