//! `kvant profile` and `kvant load --profile` against a real server.

use crate::connection::Connection;
use crate::kvant_command::{Finished, TempDir, kvant, run, run_again_while, run_kvant};
use crate::load::{load, load_command};
use crate::server_process::TestServer;
use kvant_base::tag::Activity;
use kvant_profiler::recording::{self, Kind, Recording};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

/// A function of the engine that every write goes through.
const KNOWN: &str = "kvant_engine::";

fn read(file: &Path) -> Recording {
    recording::decode(&std::fs::read(file).unwrap()).unwrap()
}

fn profile(server: &TestServer, args: &[&str], output: &Path) -> Finished {
    run(profile_command(server).args(args).arg("-o").arg(output))
}

fn profile_command(server: &TestServer) -> Command {
    let mut command = kvant();
    command.args(["profile", "--url", &format!("http://{}/", server.addr())]);
    command
}

fn assert_done(done: &Finished) {
    assert_eq!((done.code, done.stdout.as_str()), (Some(0), ""), "{}", done.stderr);
}

fn convert(args: &[&Path], output: &Path) -> Finished {
    run(kvant().arg("profile").args(args).arg("-o").arg(output))
}

/// What the history of a server says that CPU time was used for, by activity.
fn remembered(server: &TestServer) -> BTreeMap<String, u64> {
    let mut connection = Connection::open(server.addr()).unwrap();
    connection.send(b"GET /v0/history HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let response = connection.receive().unwrap();
    let text = String::from_utf8(response.body).unwrap();
    assert_eq!(response.status, 200, "{text}");
    let document: Value = serde_json::from_str(&text).unwrap();
    let mut used_ns = BTreeMap::new();
    for used in document["profile"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|second| second["cpu"].as_array().unwrap())
    {
        let activity = used["activity"].as_str().unwrap().to_owned();
        *used_ns.entry(activity).or_default() += used["cpu_ns"].as_u64().unwrap();
    }
    used_ns
}

#[test]
fn a_server_remembers_what_it_used_cpu_time_for() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let args = "-R 0 -c 8 -d 8s --workload mixed --mix put=1,get=1 --keys 1000";
    let done = load(&server, &args.split(' ').collect::<Vec<_>>(), "/");
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    // A recording on request is possible meanwhile, and what was sampled until then is kept.
    let recording = dir.path().join("a.kprof");
    assert_done(&profile(&server, &["--duration", "100ms"], &recording));
    let used_ns = remembered(&server);
    let of = |activity: &str| used_ns.get(activity).copied().unwrap_or(0);
    assert!(of("put") > 0 && of("get") > 0, "{used_ns:?}");
}

/// Records a server under load from outside, and converts the recording.
#[test]
fn a_server_under_load_is_profiled_in_every_format() {
    let dir = TempDir::new();
    let file = |name: &str| dir.path().join(name);
    let server = TestServer::start(&file("data"));
    let url = format!("http://{}/", server.addr());
    let args = "-R 0 -c 8 -d 60s --workload mixed --mix put=1,get=1 --keys 1000";
    let mut load = load_command()
        .args(args.split(' '))
        .arg(url)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    // On a busy machine the server may get little of a second of CPU time, and the recording may
    // end before the load starts.
    run_again_while(
        |_| {
            let recording = read(&file("a.kprof"));
            let has =
                |is_it: fn(Kind) -> bool| recording.samples.iter().any(|sample| is_it(sample.kind));
            !(has(|kind| kind == Kind::Cpu)
                && has(|kind| kind == Kind::Alloc)
                && has(|kind| matches!(kind, Kind::Wait(_))))
        },
        || {
            let done = profile(&server, &["--duration", "1s"], &file("a.kprof"));
            assert_done(&done);
            done
        },
    );
    run_again_while(
        |_| std::fs::read(file("direct.collapsed")).unwrap().is_empty(),
        || {
            let args = ["--duration", "1s", "--event", "cpu"];
            let done = profile(&server, &args, &file("direct.collapsed"));
            assert_done(&done);
            done
        },
    );
    load.kill().unwrap();
    load.wait().unwrap();
    let recording = read(&file("a.kprof"));
    assert!(!recording.needs_symbols());
    assert!(recording.samples.iter().any(|sample| sample.kind == Kind::Cpu));
    assert!(recording.samples.iter().any(|sample| sample.kind == Kind::Alloc));
    assert!(recording.samples.iter().any(|sample| matches!(sample.kind, Kind::Wait(_))));
    let direct = std::fs::read_to_string(file("direct.collapsed")).unwrap();
    assert!(direct.contains(KNOWN), "{direct}");

    assert_done(&convert(&[&file("a.kprof")], &file("b.kprof")));
    assert_eq!(read(&file("b.kprof")), recording);
    let done = run(kvant().arg("profile").arg(file("a.kprof")).args([
        "-o",
        "-",
        "--format",
        "collapsed",
        "--kind",
        "cpu",
    ]));
    assert_eq!(done.code, Some(0), "{}", done.stderr);
    assert!(done.stdout.contains(KNOWN), "{}", done.stdout);
    assert_done(&convert(&[&file("a.kprof")], &file("a.pb.gz")));
    assert!(std::fs::read(file("a.pb.gz")).unwrap().starts_with(&[0x1f, 0x8b]));
    assert_done(&run(kvant().arg("profile").arg(file("a.kprof"))));
    assert_done(&convert(
        &[Path::new("--diff"), &file("a.kprof"), &file("b.kprof")],
        &file("d.html"),
    ));
    for page in ["a.html", "d.html"] {
        assert!(std::fs::read(file(page)).unwrap().starts_with(b"<!"), "{page}");
    }
    assert_eq!(server.stop().code, Some(0));
}

/// A long recording that has started.
fn begin(
    server: &TestServer,
    output: &Path,
) -> (std::process::Child, BufReader<std::process::ChildStderr>) {
    let mut command = profile_command(server);
    command.args(["--duration", "60m", "-o"]).arg(output).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("records for 60m"), "{line}");
    (child, stderr)
}

#[test]
fn a_signal_ends_the_recording_and_writes_it() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let output = dir.path().join("early.kprof");
    let (mut child, mut stderr) = begin(&server, &output);
    // A second request is rejected once the first has started. If the second arrives first, the
    // long one is rejected and has to be started again.
    let mut begun_again = 0;
    loop {
        let other = profile(
            &server,
            &["--duration", "100ms", "--event", "lock"],
            &dir.path().join("other.html"),
        );
        match other.code {
            Some(0) => {
                if child.try_wait().unwrap().is_some() {
                    begun_again += 1;
                    assert!(begun_again < 20, "the long recording never comes first");
                    (child, stderr) = begin(&server, &output);
                }
                continue;
            }
            code => assert_eq!(code, Some(1), "{other:?}"),
        }
        assert!(other.stderr.contains("one profile at a time"), "{}", other.stderr);
        break;
    }
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(status.unwrap().success());
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{rest}");
    assert!(read(&output).facts.duration_ns < 3_600_000_000_000);
    assert_eq!(server.stop().code, Some(0));
}

#[test]
fn errors_say_what_to_do() {
    let dir = TempDir::new();
    let output = dir.path().join("x.html");
    let output = output.to_str().unwrap();
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let done = run_kvant(&["profile", "--url", &format!("http://{free}"), "-o", output]);
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains("is `kvant serve` running there?"), "{}", done.stderr);

    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let serving = thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        let mut head = BufReader::new(stream.try_clone().unwrap());
        let mut line = String::new();
        while head.read_line(&mut line).unwrap() > 2 {
            line.clear();
        }
        stream.write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno").unwrap();
    });
    let done = run_kvant(&["profile", "--url", &format!("http://{address}"), "-o", output]);
    serving.join().unwrap();
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains("it is no Kvant server"), "{}", done.stderr);

    let server =
        TestServer::start_with(&dir.path().join("data"), &["--admin-listen", "127.0.0.1:0"]);
    let done = run(profile_command(&server).args(["-o", output]));
    assert_eq!(done.code, Some(1));
    assert!(done.stderr.contains("--admin-listen"), "{}", done.stderr);
    assert_eq!(server.stop().code, Some(0));

    let page = dir.path().join("page.kprof");
    std::fs::write(&page, "<!DOCTYPE html>").unwrap();
    let done = run(kvant().arg("profile").arg(&page));
    assert_eq!(done.code, Some(1));
    assert!(
        done.stderr.contains("this is not a recording") && done.stderr.contains("page.kprof"),
        "{}",
        done.stderr
    );

    let done = run_kvant(&["profile", "-o", "x.svg", "--event", "wall"]);
    assert_eq!(done.code, Some(2));
    assert!(done.stderr.contains("2 arguments are refused"), "{}", done.stderr);
}

#[test]
fn a_load_records_itself() {
    let dir = TempDir::new();
    let server = TestServer::start(&dir.path().join("data"));
    let file = dir.path().join("load.kprof");
    let args = [
        "-R",
        "0",
        "-c",
        "2",
        "-d",
        "1s",
        "--warmup",
        "500ms",
        "--profile",
        file.to_str().unwrap(),
    ];
    let done = load(&server, &args, "/v0/status");
    assert_eq!(done.code, Some(0), "{}\n{}", done.stdout, done.stderr);
    let recording = read(&file);
    assert!(recording.facts.command.contains("load"), "{:?}", recording.facts);
    assert!(
        recording.threads.iter().any(|thread| thread.name == "load-0"),
        "{:?}",
        recording.threads
    );
    let mut tags = recording.samples.iter().map(|sample| sample.tag.activity);
    assert!(tags.any(|activity| activity == Activity::Load));
    assert!(
        recording.symbols.iter().flatten().any(|function| function.name.contains("kvant_load::"))
    );
    assert_eq!(server.stop().code, Some(0));
}
