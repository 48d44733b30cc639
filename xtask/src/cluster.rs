//! `cargo xtask cluster`: a real cluster of Apache Cassandra on this machine, for development.
//!
//! `up` fetches Cassandra with Maven, starts one node after the other on 127.0.0.1, 127.0.0.2, ...,
//! and returns when all accept clients. `start` starts one that has ended, with its data. `down`
//! ends them and removes their data. The nodes outlive
//! the chore; their process ids are in files of `target/cluster`, and only processes that run from
//! there are ended.

mod node;

pub(crate) use node::is_isolated;

use crate::process::{self, Verdict, about};
use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use node::{ISOLATED, Node, SWITCH, SWITCH_ADDRESS};
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

/// More have no room on a machine for development.
const NODE_COUNT_MAX: u8 = 9;
/// A node accepts clients a moment before the others count it as one of the cluster, which they do
/// not log: their gossip takes a second or two.
const GOSSIP_TIME: Duration = Duration::from_secs(5);

pub(crate) fn command() -> Command {
    let nodes = Arg::new("nodes").long("nodes").value_name("N").default_value("3");
    let range = value_parser!(u8).range(1..=i64::from(NODE_COUNT_MAX));
    let login = Arg::new("login").long("login").action(ArgAction::SetTrue);
    let up = Command::new("up")
        .about("Start Apache Cassandra 5. Needs Maven and a JDK 17; 1.3 GiB of memory a node")
        .arg(nodes.value_parser(range).help("Nodes, on 127.0.0.1 and the addresses after it"))
        .arg(login.help("Require a user and a password: at first `cassandra`, `cassandra`"));
    Command::new("cluster")
        .about("Start or end a cluster of Apache Cassandra on this machine")
        .subcommand_required(true)
        .subcommand(up)
        .subcommand(
            Command::new("start")
                .about("Start a node of the cluster again that has ended")
                .arg(Arg::new("node").required(true).value_parser(range).help("Its number")),
        )
        .subcommand(Command::new("down").about("End the nodes and remove their data"))
}

pub(crate) fn run(matches: &ArgMatches) -> Verdict {
    match matches.subcommand() {
        Some(("up", matches)) => {
            let count = matches.get_one::<u8>("nodes").copied().unwrap_or(1);
            up(count, matches.get_flag("login"))?;
        }
        Some(("start", matches)) => {
            let number = matches.get_one::<u8>("node").copied().unwrap_or(1);
            let dir = dir()?;
            Node::new(&dir, number).start(&java()?, &fetch(&dir)?, false)?;
        }
        _ => down()?,
    }
    Ok(true)
}

/// The directory of the nodes: `node-1` and so on, each with the file `pid`.
pub(crate) fn dir() -> Result<PathBuf, String> {
    Ok(process::target_dir()?.join("cluster"))
}

/// Runs `chore` on a cluster of `count` nodes, which ends with it.
pub(crate) fn with<T>(
    count: u8,
    needs_login: bool,
    chore: impl FnOnce() -> Result<T, String>,
) -> Result<T, String> {
    let done = up(count, needs_login).and_then(|()| chore());
    down()?;
    done
}

/// Starts a cluster of `count` nodes.
fn up(count: u8, needs_login: bool) -> Result<(), String> {
    let dir = dir()?;
    down()?;
    let jars = fetch(&dir)?;
    let java = java()?;
    for number in 1..=count {
        let node = Node::new(&dir, number);
        node.start(&java, &jars, needs_login)?;
        println!("cluster: {} is up", node.address());
    }
    if count > 1 {
        thread::sleep(GOSSIP_TIME);
    }
    Ok(())
}

/// Ends all nodes that were started here, and removes their data.
fn down() -> Result<(), String> {
    let dir = dir()?;
    for number in 1..=NODE_COUNT_MAX {
        let node = Node::new(&dir, number);
        if node.kill()? {
            println!("cluster: {} has ended", node.address());
        }
        node.remove()?;
    }
    Ok(())
}

/// The process of a node that is up, from 1.
pub(crate) fn process_of(number: u8) -> Result<u32, String> {
    let node = Node::new(&dir()?, number);
    node.pid().ok_or_else(|| format!("the node {} is not up", node.address()))
}

/// Runs this chore again where it is alone with its network, which tests may break. Nodes are then
/// on 10.0.0.1 and so on, each behind a cable `node-1` and so on.
pub(crate) fn isolated() -> Verdict {
    fetch(&dir()?)?;
    let program = std::env::current_exe().map_err(about("this program"))?;
    let mut command = std::process::Command::new("unshare");
    command.args(["--map-root-user", "--net", "--"]);
    let network = format!(
        "ip link set lo up && ip link add {SWITCH} type bridge && \
         ip address add {SWITCH_ADDRESS} dev {SWITCH} && ip link set {SWITCH} up && \
         exec \"$0\" \"$@\""
    );
    command.args(["sh", "-c", &network]).arg(program);
    command.args(std::env::args_os().skip(1));
    command.env(ISOLATED, "1").env("CARGO_NET_OFFLINE", "true");
    let status = command.status().map_err(about("unshare"))?;
    Ok(status.success())
}

/// The directory with Cassandra and all that it needs, fetched once.
fn fetch(dir: &Path) -> Result<PathBuf, String> {
    let pom = include_str!("cluster/pom.xml");
    let (jars, fetched) = (dir.join("jars"), dir.join("jars/pom.xml"));
    if fs::read_to_string(&fetched).is_ok_and(|text| text == pom) {
        return Ok(jars);
    }
    println!("cluster: fetching Apache Cassandra");
    fs::create_dir_all(&jars).map_err(about(jars.display()))?;
    let target = dir.join("pom.xml");
    fs::write(&target, pom).map_err(about(target.display()))?;
    let mut maven = std::process::Command::new("mvn");
    maven.args(["--batch-mode", "--quiet", "--file"]).arg(&target);
    maven.args(["dependency:copy-dependencies", "-DincludeScope=runtime"]);
    maven.arg(format!("-DoutputDirectory={}", jars.display()));
    process::run(&mut maven)?;
    fs::write(&fetched, pom).map_err(about(fetched.display()))?;
    Ok(jars)
}

/// Cassandra 5 runs on Java 11 and 17.
fn java() -> Result<PathBuf, String> {
    let homes = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter();
    let installed = fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten();
    let known = installed.map(|entry| entry.path());
    let is_17 = |home: &PathBuf| {
        let release = fs::read_to_string(home.join("release")).unwrap_or_default();
        release.contains("JAVA_VERSION=\"17.") && home.join("bin/java").exists()
    };
    let home = homes.chain(known).find(is_17);
    home.map(|home| home.join("bin/java"))
        .ok_or_else(|| "no JDK 17: install one, or name it in JAVA_HOME".to_string())
}
