//! What a subject finds stored when it starts: a case begins on data as the fill left them.

use crate::conduct::{TempDir, calm, run_of};
use kvant_lab::conduct::{Progress, Stop};
use kvant_lab::plan::Plan;
use std::fs;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A program that passes for a Kvant: it notes its address and what is in its directory, and leaves
/// a file there. The test responds in its place.
const PROGRAM: &str = r#"#!/bin/sh
[ "$1" = serve ] || exit 0
echo "$3" $(ls "$5") >> "$0.starts"
touch "$5/${3##*:}"
exec sleep 1000
"#;

const HEAD: &str = r#"
repeats = 2
connections = 1
[data]
keys = 3
value-bytes = 1
[phase]
held = { rate = 50, duration = "200ms", warmup = "0s" }
"#;

/// What was noted of a run.
struct Noted {
    /// For each start the files that were in the directory.
    starts: Vec<Vec<String>>,
    /// Methods of requests for records, without repetitions.
    methods: Vec<String>,
}

/// Runs a plan with this program as its Kvants.
fn noted(text: &str) -> Noted {
    let dir = TempDir::new();
    let program = dir.0.join("kvant");
    fs::write(&program, PROGRAM).unwrap();
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
    let text = format!("{HEAD}{text}");
    let plan = Plan::parse(&text, Path::new("stores.toml"));
    let plan = plan.unwrap_or_else(|problems| panic!("{problems}"));
    let starts = dir.0.join("kvant.starts");
    let lines = || fs::read_to_string(&starts).unwrap_or_default();
    let (is_over, methods) = (AtomicBool::new(false), Arc::default());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut served = 0;
            while !is_over.load(Ordering::SeqCst) {
                // The last line may not be whole.
                let lines = lines();
                let whole = lines.split_inclusive('\n').filter(|line| line.ends_with('\n'));
                for line in whole.skip(served) {
                    listen(line.split_whitespace().next().unwrap(), &methods);
                    served += 1;
                }
                std::thread::sleep(Duration::from_millis(5));
            }
        });
        let machine = calm(&dir);
        let (stop, mut progress) = (Stop::default(), Progress::none());
        let ended = run_of(&program, &plan, &dir, &machine, &stop, false, &mut progress);
        is_over.store(true, Ordering::SeqCst);
        ended.unwrap();
    });
    let files = |line: &str| line.split_whitespace().skip(1).map(str::to_owned).collect();
    let mut methods = methods.lock().unwrap().clone();
    methods.dedup();
    Noted { starts: lines().lines().map(files).collect(), methods }
}

/// Responds to all requests at an address until the test ends.
fn listen(address: &str, methods: &Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind(address).unwrap();
    let methods = Arc::clone(methods);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let methods = Arc::clone(&methods);
            std::thread::spawn(move || respond(stream.unwrap(), &methods));
        }
    });
}

fn respond(mut stream: TcpStream, methods: &Mutex<Vec<String>>) {
    let mut unread = Vec::new();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = stream.read(&mut buffer) {
        unread.extend_from_slice(&buffer[..count]);
        while let Some(end) = unread.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8(unread[..end].to_vec()).unwrap().to_lowercase();
            let length = head.split_once("content-length: ").map_or(0, |(_, after)| {
                after.lines().next().unwrap().trim().parse::<usize>().unwrap()
            });
            if unread.len() < end + 4 + length {
                break;
            }
            unread.drain(..end + 4 + length);
            if let Some((method, _)) = head.split_once(" /v0/entity?") {
                methods.lock().unwrap().push(method.to_owned());
            }
            if stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}").is_err() {
                return;
            }
        }
    }
}

/// Each case of an lsm begins on the store as it was filled, and the cases between on an empty one.
#[track_caller]
fn assert_restored(starts: &[Vec<String>]) {
    let [fill, first, others @ ..] = starts else { panic!("{starts:?}") };
    assert_eq!((fill.len(), first.len()), (0, 1), "{starts:?}");
    assert_eq!(others, [vec![], first.clone(), vec![]], "{starts:?}");
}

#[test]
fn a_store_is_restored_after_a_case_with_another_engine() {
    let noted = noted("[workload]\nget = {}\n[sweep]\nengine = [\"lsm\", \"memory\"]\n");
    assert_restored(&noted.starts);
}

#[test]
fn a_store_is_restored_after_a_case_that_only_reads_an_empty_one() {
    let noted = noted("[workload]\nget = {}\nstatus = { empty = true }\n");
    assert_restored(&noted.starts);
}

#[test]
fn data_in_a_cluster_are_stored_again_once_a_subject_of_it_has_changed_them() {
    let noted = noted(
        r#"
        [subject]
        one = { serve = { engine = "cassandra" } }
        two = { serve = { engine = "cassandra", workers = 2 } }
        [workload]
        get-first = {}
        delete = {}
        get = {}
        "#,
    );
    let methods: Vec<&str> = noted.methods.iter().map(String::as_str).collect();
    assert_eq!((&methods[..2], methods.last()), (&["put", "get"][..], Some(&"get")));
    let count = |method| methods.iter().filter(|known| **known == method).count();
    // A disturbed case is repeated.
    assert!(count("delete") >= 4, "{methods:?}");
    assert_eq!(count("put"), 1 + count("delete"), "{methods:?}");
}
