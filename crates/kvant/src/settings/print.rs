//! Prints settings: the current values for `--print-config`, and the reference for
//! `docs/configuration.md`.

use super::kind::Kind;
use super::sources::CONFIG_ENV;
use super::{Config, DefaultValue, SETTINGS, Setting};

/// A TOML file with the current values; the comment after each value names its source.
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
        text += &format!("{value:<width$}  # {origin}\n");
    }
    text
}

/// The reference of all settings in Markdown.
pub(crate) fn markdown() -> String {
    let mut text = String::from(HEAD);
    for setting in SETTINGS {
        text += &format!(
            "| `--{}`<br>`{}` | {} | {} | {}. {}. |\n",
            setting.name,
            setting.env_name(),
            markdown_values(setting),
            markdown_default(setting),
            setting.help,
            setting.cost.replace('|', "\\|"),
        );
    }
    text += &format!(
        "| `--config`<br>`{CONFIG_ENV}` | `PATH` | no file | The TOML file with settings. Cannot be set in the file itself. |\n"
    );
    text.push_str(TAIL);
    text
}

fn markdown_values(setting: &Setting) -> String {
    let values = setting.kind.value_name();
    values.split('|').map(|value| format!("`{value}`")).collect::<Vec<_>>().join(", ")
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

Sources of the settings of `kvant serve`, strongest first:

1. a flag, such as `--sync always`;
2. an environment variable, such as `KVANT_SYNC=always`;
3. the TOML file that `--config FILE` or `KVANT_CONFIG` names, with the flag's name as the key: `sync = \"always\"`;
4. the default.

`kvant serve --print-config` prints each value and its source, as a TOML file that `--config` accepts.

Bad values are rejected at start, all of them at once, including those that a stronger source overrides, with exit code 2.
So are unknown keys of the file and unknown variables that begin with `KVANT_`, except for the variables that Kubernetes sets
for a service of that name.

Sizes are `64KiB`, `4MiB`, `1GiB` or plain bytes; durations are `250us`, `10ms`, `1s`, `2m`. In the file both are strings;
bytes, counts and switches may also be written without quotes (`selectors = 2`, `insecure = true`).

| setting | values | default | effect and cost |
|---|---|---|---|
";

const TAIL: &str = "
At start the server raises the descriptor limit to its hard limit, which bounds the number of
connections. It reserves 1,000 descriptors, or three quarters of the limit if that is less, for files
and everything else; an open table is one of them, and two with `--direct-reads`. A server whose
limit has no room for its selectors, its files and four connections logs that and does not start.
";
