//! The command line: [`command`] defines parsing, help, manual pages and shell completions.

use crate::commands::{explain, lab, load, profile};
use crate::settings::{DefaultValue, Kind, SETTINGS, Setting};
use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, ArgAction, ArgGroup, Command, value_parser};
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// Settings that are also flags of the `db` commands that open the database.
const DB_SETTINGS: [&str; 3] = ["memory", "compression", "log-format"];
/// And of `copy`: nodes and keyspace are in its places.
const COPY_SETTINGS: [&str; 9] = [
    "cluster-datacenter",
    "cluster-user",
    "cluster-password-file",
    "cluster-tls-ca",
    "cluster-replicas",
    "cluster-buckets",
    "cluster-ack",
    "cluster-timeout",
    "cluster-connections",
];

pub(crate) fn command() -> Command {
    Command::new("kvant")
        .version(clap::crate_version!())
        .about("A durable, ordered key-value database over HTTP")
        .after_help("`kvant help COMMAND` explains a command.")
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(serve())
        .subcommand(load::definition::command())
        .subcommand(profile::definition::command())
        .subcommand(explain::definition::command())
        .subcommand(lab::definition::command())
        .subcommand(db())
        .subcommand(man())
        .subcommand(completions())
        .subcommand(Command::new("docs").hide(true).about("Print docs/configuration.md"))
}

fn serve() -> Command {
    Command::new("serve")
        .about("Open the database and serve HTTP requests until SIGTERM or SIGINT")
        .long_about(
            "Open the database and serve HTTP requests until SIGTERM or SIGINT.\n\nA setting comes from its flag, \
             its environment variable or a TOML file with the flag's name as the key, strongest first. Bad \
             values are rejected at start, all of them at once. Sizes are 64KiB, 4MiB, 1GiB or plain bytes; durations are \
             250us, 10ms, 1s, 2m.\n\nExit codes: 0 stopped by a signal, 1 the database or an address cannot be opened, 2 \
             bad settings, 130 stopped by a second signal without waiting for requests.",
        )
        .args(SETTINGS.iter().map(setting_arg))
        .arg(config_arg())
        .arg(
            Arg::new("print-config")
                .long("print-config")
                .action(ArgAction::SetTrue)
                .help("Print each setting and its source, as TOML, and exit"),
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
    let long_help =
        format!("{}. {}.\n\n{default} [env: {}]", setting.help, setting.cost, setting.env_name());
    let arg = Arg::new(setting.name)
        .long(setting.name)
        .value_name(setting.kind.value_name())
        .value_parser(value_parser!(OsString))
        .help(format!("{} {default}", setting.help))
        .long_help(long_help);
    match setting.kind {
        // The flag alone means true; a value needs `=`, so that the next argument is not taken for
        // it.
        Kind::Switch => arg.num_args(0..=1).require_equals(true).default_missing_value("true"),
        Kind::Choice(words) => arg.value_parser(Suggested(words())).hide_possible_values(true),
        Kind::Path => arg.value_hint(clap::ValueHint::AnyPath),
        _ => arg,
    }
}

/// A parser that accepts any value and suggests words to the shell's completion. Settings are
/// checked together after parsing, so that all bad values are reported at once.
#[derive(Clone)]
struct Suggested(Vec<&'static str>);

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

/// Whether the `db` command opens the database, and so has settings.
pub(crate) fn opens_database(db_command: &str) -> bool {
    matches!(db_command, "compact" | "checkpoint" | "copy")
}

fn db() -> Command {
    let dir = || path_arg("DIR", "Directory of the database");
    let settings = |names: &'static [&str]| {
        SETTINGS.iter().filter(|setting| names.contains(&setting.name)).map(setting_arg)
    };
    let opening = |command: Command| {
        debug_assert!(opens_database(command.get_name()));
        command.args(settings(&DB_SETTINGS)).arg(config_arg())
    };
    Command::new("db")
        .about("Check, repair, read and copy a database that is not being served")
        .long_about(
            "Check, repair, read and copy a database that is not being served.\n\nEach command locks the directory while it \
             runs. If a server or another command holds the lock, it fails and names that process.\n\nExit codes: 0 \
             done, 1 failed or damage found, 2 wrong usage, 3 repaired, but something is lost.",
        )
        .subcommand_required(true)
        .arg_required_else_help(true)
        .subcommand(
            Command::new("verify").about("Read everything and check every checksum; changes nothing").arg(dir()),
        )
        .subcommand(
            Command::new("repair")
                .about("Rebuild a database from its readable tables and logs; moves the others to DIR/lost")
                .long_about(
                    "Rebuild a database from its readable tables and logs; moves the others to DIR/lost.\n\nEach line \
                     names what is `damaged`, `moved` or `lost`. Exit codes: 0 nothing is lost, 1 not repaired, 3 repaired \
                     with losses: records are missing, and older or deleted ones may have reappeared.",
                )
                .arg(dir()),
        )
        .subcommand(
            Command::new("dump")
                .about("Print the contents of a database, one line per item")
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
        .subcommand(opening(copy().args(settings(&COPY_SETTINGS))))
}

fn copy() -> Command {
    let place = |name: &'static str, help: &'static str| {
        Arg::new(name)
            .required(true)
            .value_parser(value_parser!(OsString))
            .value_hint(clap::ValueHint::DirPath)
            .help(help)
    };
    Command::new("copy")
        .about("Copy all records between directories, servers and clusters, or compare them")
        .long_about(
            "Copy all records between directories, servers and clusters, or compare them.\n\nA place is a directory of the \
             engine lsm or leveldb, which no process has open; a server as http://127.0.0.1:8080, which can only be copied from; or \
             cassandra://HOST[:PORT][,HOST...]/KEYSPACE, a keyspace of a cluster, with the settings --cluster-... that \
             `serve` has, too.\n\nA copy that was interrupted goes on when the same command is run again. A directory is \
             written in TO.unfinished, read again, compared, and gets its name then.",
        )
        .arg(place("FROM", "Directory, server or keyspace: kvant-data, http://127.0.0.1:8080, cassandra://db1/kvant"))
        .arg(place("TO", "Directory or keyspace that does not exist, or is empty"))
        .arg(flag(
            "verify",
            "Read both places again at the end and compare them by digests of ranges of keys; name the keys that differ",
        ))
        .arg(flag("verify-only", "Copy nothing: compare").conflicts_with("verify"))
        .arg(
            Arg::new("to-engine")
                .long("to-engine")
                .value_name("ENGINE")
                .value_parser(["lsm", "leveldb"])
                .help("Engine of the directory TO [default: leveldb if FROM is a directory of lsm, else lsm]"),
        )
        .arg(flag("forget-ttl", "Copy records that expire, without their expiry, to LevelDB, which has none"))
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
            .help("Directory for the pages, one file per command; created if it does not exist"),
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
