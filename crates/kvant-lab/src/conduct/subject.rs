//! A running subject: its command line, its readiness, its end.

use super::context::{Context, Problem};
use super::http::Server;
use super::nodes;
use super::process::Process;
use super::watch::Watched;
use crate::plan::{Subject, SubjectKind};
use kvant_base::{Error, Result};
use kvant_load::{Address, Target};
use std::fs::File;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Between SIGTERM and SIGKILL. Kvant's own limit for requests in flight is 10 s.
const STOP_WAIT_MAX: Duration = Duration::from_secs(20);
/// Between two looks at whether a subject is ready.
const READY_PERIOD: Duration = Duration::from_millis(20);
/// Longest wait for a response that says so.
const READY_WAIT_MAX: Duration = Duration::from_secs(2);
/// Longest wait for a connection to a subject that runs already.
const REACH_WAIT_MAX: Duration = Duration::from_secs(5);
/// How long preparing commands, such as builds, may take.
const PREPARE_MAX: Duration = Duration::from_secs(1_800);

/// A subject that is ready.
pub(super) struct Running {
    /// `None` if it was not started by us.
    process: Option<Process>,
    pub(super) target: Target,
    /// For single requests.
    pub(super) server: Option<Server>,
    pub(super) watched: Watched,
    /// Processes of this machine that are nodes of its cluster.
    pub(super) nodes: Vec<u32>,
    /// Whether it has Kvant's interface for operators.
    pub(super) is_kvant: bool,
    /// Whether its times are those of this machine.
    pub(super) shares_clock: bool,
    /// What it says of its version.
    pub(super) software: Option<String>,
}

impl Running {
    /// Starts `subject` with its data in `data`, and waits until it is ready.
    ///
    /// # Errors
    /// [`Problem::Subject`] if it is not found or does not become ready.
    pub(super) fn start(
        context: &Context<'_>,
        subject: &Subject,
        data: &Path,
    ) -> std::result::Result<Running, Problem> {
        let (process, url) = match &subject.kind {
            SubjectKind::Url(url) => (None, url.clone()),
            SubjectKind::Kvant { .. } | SubjectKind::Command { .. } => {
                let port = free_port()?;
                let mut command = command(context, subject, port, data);
                log_to(&mut command, &context.log_file(subject))?;
                let process = Process::start(command, &context.server_cpus, context.stop)
                    .map_err(|error| Problem::Subject(format!("did not start: {error}")))?;
                (Some(process), format!("http://127.0.0.1:{port}/"))
            }
        };
        let resolved = Target::parse(&url)?.resolve();
        let mut target = resolved.map_err(|error| Problem::Subject(error.to_string()))?;
        let software = wait_until_ready(context, subject, process.as_ref(), &mut target)?;
        let server = Server::of(&target);
        let watched = match &process {
            Some(process) => Watched::Group(process.id()),
            None => context.listeners(&target),
        };
        let is_kvant = server.as_ref().is_some_and(speaks_kvant);
        let shares_clock = process.is_some() || !matches!(watched, Watched::Nothing);
        let nodes = nodes::on_this_machine(subject, &context.options.proc);
        Ok(Running { process, target, server, watched, nodes, is_kvant, shares_clock, software })
    }

    /// How it ended, if it did.
    pub(super) fn end(&self) -> Option<String> {
        self.process.as_ref()?.end()
    }

    /// The port that it listens at.
    pub(super) fn port(&self) -> u16 {
        match self.target.addresses.first() {
            Some(Address::Tcp(address)) => address.port(),
            Some(Address::Unix(_)) | None => 0,
        }
    }

    /// Ends it, if it was started by us. Returns whether it had to be killed.
    ///
    /// # Errors
    /// `Io` if it cannot be signalled.
    pub(super) fn stop(self) -> Result<bool> {
        match self.process {
            Some(process) => process.stop(STOP_WAIT_MAX),
            None => Ok(false),
        }
    }
}

/// The command line of a subject. `{port}`, `{data}` and `{dir}` in arguments are replaced.
fn command(context: &Context<'_>, subject: &Subject, port: u16, data: &Path) -> Command {
    match &subject.kind {
        SubjectKind::Kvant { program, options } => {
            let program = program.as_deref().map(|program| context.in_plan_dir(program));
            let mut command = Command::new(program.as_deref().unwrap_or(&context.options.program));
            command.args(["serve", "--listen", &format!("127.0.0.1:{port}"), "--data"]).arg(data);
            command.args(options.iter().map(|(name, value)| format!("--{name}={value}")));
            // Settings come from the plan alone.
            for (name, _) in std::env::vars_os() {
                if name.to_string_lossy().starts_with("KVANT_") {
                    command.env_remove(name);
                }
            }
            command
        }
        SubjectKind::Command { command: words, environment, .. } => {
            let data = data.display().to_string();
            let places = [("{port}", port.to_string()), ("{data}", data)];
            let mut command = context.command(words, &places);
            command.envs(environment.iter().map(|(name, value)| (name, value)));
            command
        }
        SubjectKind::Url(_) => unreachable!("a URL has no command"),
    }
}

/// The command line or URL of a subject, for the report.
pub(super) fn command_text(subject: &Subject, program: &Path) -> String {
    match &subject.kind {
        SubjectKind::Kvant { program: other, options } => {
            let program = other.as_deref().unwrap_or(program);
            let name = program.file_name().unwrap_or(program.as_os_str()).to_string_lossy();
            let options: String =
                options.iter().map(|(name, value)| format!(" --{name}={value}")).collect();
            format!("{name} serve{options}")
        }
        SubjectKind::Command { command, .. } => command.join(" "),
        SubjectKind::Url(url) => url.clone(),
    }
}

/// Runs the commands that come before a subject's first start.
///
/// # Errors
/// [`Problem::Subject`] with the command that failed.
pub(super) fn prepare(
    context: &Context<'_>,
    subject: &Subject,
) -> std::result::Result<(), Problem> {
    let SubjectKind::Command { prepare, environment, .. } = &subject.kind else { return Ok(()) };
    for words in prepare {
        let mut command = context.command(words, &[]);
        command.envs(environment.iter().map(|(name, value)| (name, value)));
        log_to(&mut command, &context.log_file(subject))?;
        context.run_to_end(command, &words.join(" "), PREPARE_MAX)?;
    }
    Ok(())
}

/// Waits until the subject is ready. Returns the software that it names.
fn wait_until_ready(
    context: &Context<'_>,
    subject: &Subject,
    process: Option<&Process>,
    target: &mut Target,
) -> std::result::Result<Option<String>, Problem> {
    let until = Instant::now() + subject.ready_max;
    loop {
        let why = match look(subject, target) {
            Ok(software) => return Ok(software),
            Err(why) => why,
        };
        if let Some(end) = process.and_then(Process::end) {
            let log = context.last_line_of(&context.log_file(subject));
            return Err(Problem::Subject(format!("it {end} before it was ready{log}")));
        }
        if context.stop.is_requested() {
            return Err(Problem::Stopped);
        }
        if Instant::now() >= until {
            let limit = subject.ready_max.as_secs_f64();
            return Err(Problem::Subject(format!("it was not ready after {limit} s: {why}")));
        }
        context.stop.pause(READY_PERIOD);
    }
}

/// Whether the subject is ready: the software that it names, or why it is not.
fn look(subject: &Subject, target: &mut Target) -> std::result::Result<Option<String>, String> {
    let server = Server::of(target);
    let (Some(server), false) = (server, subject.ready.is_empty()) else {
        *target = target.clone().reach(REACH_WAIT_MAX).map_err(|error| error.to_string())?;
        return Ok(None);
    };
    let response =
        server.request("GET", &subject.ready, READY_WAIT_MAX).map_err(|error| error.to_string())?;
    if !(200..300).contains(&response.status) {
        return Err(format!("status {}", response.status));
    }
    // A Kvant responds while it recovers, too.
    let is_recovering = matches!(subject.kind, SubjectKind::Kvant { .. })
        && String::from_utf8_lossy(&response.body).contains("\"recovering\"");
    if is_recovering {
        return Err("it recovers".to_owned());
    }
    Ok(response.software)
}

fn speaks_kvant(server: &Server) -> bool {
    let stats = server.request("GET", "/v0/stats", READY_WAIT_MAX);
    let stats = stats.ok().filter(|response| response.status == 200);
    let value =
        stats.and_then(|response| serde_json::from_slice::<serde_json::Value>(&response.body).ok());
    value.is_some_and(|value| value["server"].is_object() && value["latency"].is_object())
}

/// A port that nothing listens at.
fn free_port() -> Result<u16> {
    let bound = TcpListener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
    bound
        .and_then(|listener| listener.local_addr())
        .map(|address| address.port())
        .map_err(|error| Error::io("find a free port for", Path::new("a subject"), error))
}

/// Appends both outputs of `command` to a file.
fn log_to(command: &mut Command, file: &PathBuf) -> Result<()> {
    let failed = |error| Error::io("open", file, error);
    if let Some(dir) = file.parent() {
        std::fs::create_dir_all(dir).map_err(failed)?;
    }
    let log = File::options().create(true).append(true).open(file).map_err(failed)?;
    let other = log.try_clone().map_err(failed)?;
    command.stdin(Stdio::null()).stdout(log).stderr(other);
    Ok(())
}
