//! The command line, defined once: parsing, help, the manual pages and the shell completions all
//! come from [`command`].

use crate::commands::{load, profile};
use crate::settings::{DefaultValue, Kind, Presence, SETTINGS, Setting};
use clap::builder::{PossibleValue, TypedValueParser, ValueParser};
use clap::{Arg, ArgAction, ArgGroup, Command, value_parser};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Commands of the contract that a later version will have, and what they will do.
pub(crate) const PLANNED: [(&str, &str); 1] = [("lab", "Run experiments and write reports")];

/// Settings that the `db` commands which open the database take as flags too.
const DB_SETTINGS: [&str; 3] = ["memory", "compression", "log-format"];

/// The whole command line.
pub(crate) fn command() -> Command {
    let planned = PLANNED.map(|(name, about)| {
        // Whatever follows is taken, so that the answer is that the command does not exist yet and
        // not that a flag is wrong.
        let rest = Arg::new("rest").num_args(0..).trailing_var_arg(true).allow_hyphen_values(true);
        Command::new(name).about(about).hide(true).disable_help_flag(true).arg(rest)
    });
    Command::new("kvant")
        .version(clap::crate_version!())
        .about("A durable, ordered key-value database over HTTP")
        .after_help("`kvant help COMMAND` explains a command.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve())
        .subcommand(load::definition::command())
        .subcommand(profile::definition::command())
        .subcommand(db())
        .subcommand(man())
        .subcommand(completions())
        .subcommand(Command::new("docs").hide(true).about("Print docs/configuration.md"))
        .subcommands(planned)
}

fn serve() -> Command {
    Command::new("serve")
        .about("Open the database and answer HTTP requests until SIGTERM or SIGINT")
        .long_about(
            "Open the database and answer HTTP requests until SIGTERM or SIGINT.\n\nEvery setting can come from its flag, \
             from its environment variable or from a TOML file with the flag's name as the key, the strongest first. Bad \
             values are refused at start, all of them at once. Sizes are 64KiB, 4MiB, 1GiB or plain bytes; durations are \
             250us, 10ms, 1s, 2m.\n\nExit codes: 0 stopped by a signal, 1 the database or an address cannot be opened, 2 \
             bad settings, 130 stopped by a second signal without waiting for requests.",
        )
        .args(SETTINGS.iter().map(setting_arg))
        .arg(config_arg())
        .arg(
            Arg::new("print-config")
                .long("print-config")
                .action(ArgAction::SetTrue)
                .help("Print each setting and where it came from, as TOML, and exit"),
        )
}

fn config_arg() -> Arg {
    Arg::new("config")
        .long("config")
        .value_name("FILE")
        .value_parser(value_parser!(OsString))
        .help("TOML file with settings [env: KVANT_CONFIG]")
}

fn setting_arg(setting: &'static Setting) -> Arg {
    let default = match &setting.default {
        DefaultValue::Text(text) => format!("[default: {text}]"),
        DefaultValue::Derived { words, .. } => format!("[default: {words}]"),
        DefaultValue::Unset(meaning) => format!("[not set: {meaning}]"),
    };
    let arg = Arg::new(setting.name)
        .long(setting.name)
        .value_name(setting.kind.value_name())
        .help(format!("{} {default}", setting.help))
        .long_help(format!(
            "{}. {}.\n\n{default} [env: {}]",
            setting.help,
            setting.cost,
            setting.env_name()
        ));
    match setting.kind {
        Kind::Switch => {
            // The flag alone switches on; a value needs `=`, so that what follows the flag is never
            // taken for it.
            arg.num_args(0..=1)
                .require_equals(true)
                .default_missing_value("true")
                .value_parser(value_parser!(OsString))
        }
        Kind::Choice(choices) => {
            let words: Vec<&str> = choices
                .iter()
                .filter(|choice| choice.presence == Presence::Exists)
                .map(|choice| choice.word)
                .collect();
            arg.value_parser(ValueParser::new(Suggested(words))).hide_possible_values(true)
        }
        Kind::Path => {
            arg.value_parser(value_parser!(OsString)).value_hint(clap::ValueHint::AnyPath)
        }
        _ => arg.value_parser(value_parser!(OsString)),
    }
}

/// Takes any value and offers words to the shell's completion: values are judged with all other
/// settings, so that all bad ones are reported at once.
#[derive(Clone)]
pub(crate) struct Suggested(pub(crate) Vec<&'static str>);

impl TypedValueParser for Suggested {
    type Value = OsString;

    fn parse_ref(
        &self,
        _: &Command,
        _: Option<&Arg>,
        value: &OsStr,
    ) -> Result<OsString, clap::Error> {
        Ok(value.to_os_string())
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.0.iter().map(PossibleValue::new)))
    }
}

/// Whether the `db` command opens the database to work on it, and so takes settings.
pub(crate) fn opens_database(db_command: &str) -> bool {
    matches!(db_command, "compact" | "checkpoint")
}

fn db() -> Command {
    let dir = || path_arg("DIR", "Directory of the database");
    let opening = |command: Command| {
        debug_assert!(opens_database(command.get_name()));
        let settings = SETTINGS.iter().filter(|setting| DB_SETTINGS.contains(&setting.name));
        command.args(settings.map(setting_arg)).arg(config_arg())
    };
    Command::new("db")
        .about("Check, repair, read and copy a database that is not being served")
        .long_about(
            "Check, repair, read and copy a database that is not being served.\n\nEach command owns the directory while it \
             runs: it is refused, naming the owner's process id, while a server or another command has it.\n\nExit codes: 0 \
             done, 1 failed or damage found, 2 wrong usage, 3 repaired, but something is lost.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("verify").about("Read everything and check every checksum; changes nothing").arg(dir()),
        )
        .subcommand(
            Command::new("repair")
                .about("Make a database of the tables and logs that can be read; sets the others aside in DIR/lost")
                .long_about(
                    "Make a database of the tables and logs that can be read; sets the others aside in DIR/lost.\n\nEach line \
                     says what was found `damaged`, `moved` or `lost`. Exit codes: 0 nothing is lost, 1 not repaired, 3 repaired, \
                     but for what is lost: records are missing, and older or deleted ones may have come back.",
                )
                .arg(dir()),
        )
        .subcommand(
            Command::new("dump")
                .about("Print what a database holds, one line an item")
                .arg(dir())
                .arg(flag("records", "Every record: key and value (the default)"))
                .arg(flag("manifest", "The version edits of the manifest"))
                .arg(number("wal", "The records of the log with this file number"))
                .arg(number("table", "The blocks and entries of the table with this file number"))
                .group(ArgGroup::new("what").args(["records", "manifest", "wal", "table"])),
        )
        .subcommand(Command::new("stats").about("Print levels, sizes and counts as JSON").arg(dir()))
        .subcommand(opening(Command::new("compact").about("Compact everything into the last level").arg(dir())))
        .subcommand(opening(
            Command::new("checkpoint")
                .about("Make a consistent copy that shares the tables by hard links")
                .arg(dir())
                .arg(path_arg("TARGET", "Directory to create, on the same file system")),
        ))
        .subcommand(
            Command::new("restore")
                .about("Make a database from a checkpoint, after verifying it")
                .arg(path_arg("CHECKPOINT", "Directory of the checkpoint"))
                .arg(path_arg("DIR", "Directory of the new database; must not exist")),
        )
}

fn path_arg(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name)
        .required(true)
        .value_parser(value_parser!(PathBuf))
        .value_hint(clap::ValueHint::DirPath)
        .help(help)
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

fn number(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("NUMBER").value_parser(value_parser!(u64)).help(help)
}

fn man() -> Command {
    Command::new("man").about("Write the manual pages: into DIR, or all to standard output").arg(
        Arg::new("DIR")
            .value_parser(value_parser!(PathBuf))
            .value_hint(clap::ValueHint::DirPath)
            .help("Directory for the pages, one file a command; created when there is none"),
    )
}

fn completions() -> Command {
    Command::new("completions").about("Print the completions for a shell").arg(
        Arg::new("SHELL")
            .required(true)
            .value_parser(value_parser!(clap_complete::Shell))
            .help("The shell"),
    )
}
