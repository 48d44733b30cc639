//! Writes settings down: the values in force for `--print-config`, and the reference for
//! `docs/configuration.md`.

use super::kind::{Kind, Presence, words};
use super::sources::CONFIG_ENV;
use super::{Config, DefaultValue, SETTINGS, Setting};
use std::fmt::Write;

/// A TOML file that sets what is in force now; the comment behind each value says where it came
/// from.
pub(crate) fn print_config(config: &Config) -> String {
    let mut lines: Vec<(String, String)> = Vec::new();
    if let Some((path, origin)) = &config.file {
        lines.push((
            format!("# config = {}", Kind::Path.toml_literal(&path.to_string_lossy())),
            origin.to_string(),
        ));
    }
    for (setting, chosen) in SETTINGS.iter().zip(&config.chosen) {
        lines.push(match (&chosen.text, &setting.default) {
            (Some(text), _) => (
                format!("{} = {}", setting.name, setting.kind.toml_literal(text)),
                chosen.origin.to_string(),
            ),
            (None, DefaultValue::Unset(meaning)) => {
                (format!("# {} =", setting.name), format!("not set: {meaning}"))
            }
            (None, _) => unreachable!("a setting with a default has a value"),
        });
    }
    let width = lines.iter().map(|(value, _)| value.len()).max().unwrap_or(0).min(48);
    let mut text = String::new();
    for (value, origin) in lines {
        writeln!(text, "{value:<width$}  # {origin}").expect("writing to a string cannot fail");
    }
    text
}

/// The reference of all settings in Markdown.
pub(crate) fn markdown() -> String {
    let mut text = String::from(HEAD);
    for setting in SETTINGS {
        writeln!(
            text,
            "| `--{}`<br>`{}` | {} | {} | {}. {}. |",
            setting.name,
            setting.env_name(),
            markdown_values(setting),
            markdown_default(setting),
            setting.help,
            setting.cost.replace('|', "\\|"),
        )
        .expect("writing to a string cannot fail");
    }
    writeln!(
        text,
        "| `--config`<br>`{CONFIG_ENV}` | `PATH` | no file | The TOML file with settings. Cannot be set in the file itself. |"
    )
    .expect("writing to a string cannot fail");
    text.push_str(TAIL);
    text
}

fn markdown_values(setting: &Setting) -> String {
    let code = |words: Vec<&str>| {
        words.iter().map(|word| format!("`{word}`")).collect::<Vec<_>>().join(", ")
    };
    match setting.kind {
        Kind::Choice(choices) => {
            let later = words(choices, Presence::Planned);
            let now = code(words(choices, Presence::Exists));
            if later.is_empty() { now } else { format!("{now} (later: {})", code(later)) }
        }
        Kind::Form(form) => code(form.split('|').collect()),
        kind => code(kind.value_name().split('|').collect()),
    }
}

fn markdown_default(setting: &Setting) -> String {
    match &setting.default {
        DefaultValue::Text(text) => format!("`{text}`"),
        DefaultValue::Derived { words, .. } => (*words).to_string(),
        DefaultValue::Unset(meaning) => format!("not set: {meaning}"),
    }
}

const HEAD: &str = "\
# Settings

<!-- Written by `kvant docs` from crates/kvant/src/settings/table.rs. `KVANT_BLESS=1 cargo test -p kvant` rewrites it. -->

Settings of `kvant serve` come from, strongest first:

1. a flag, such as `--sync always`;
2. an environment variable, such as `KVANT_SYNC=always`;
3. the TOML file that `--config FILE` or `KVANT_CONFIG` names, with the flag's name as the key: `sync = \"always\"`;
4. the default.

`kvant serve --print-config` prints each value and where it came from, as a TOML file that can be used with `--config`.

Bad values are refused at start, all of them at once and also those that a stronger source overrides, with exit code 2.
So are unknown keys of the file and unknown variables that begin with `KVANT_` (those that Kubernetes makes for a service of
that name are passed over).

Sizes are `64KiB`, `4MiB`, `1GiB` or plain bytes; durations are `250us`, `10ms`, `1s`, `2m`. In the file both are strings;
bytes, counts and switches may also be written bare (`selectors = 2`, `insecure = true`).

| setting | values | default | what it does, what it costs |
|---|---|---|---|
";

const TAIL: &str = "
The descriptor limit is raised to its hard limit at start; it bounds the number of connections.
1,000 of it, or three quarters where that is less, are kept for files and everything else. A server
whose limit has no room for its selectors, its files and four connections says so and does not start.
";
