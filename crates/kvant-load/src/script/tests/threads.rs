//! The states of threads, the main state, and values passed between them.

use super::{load, load_with, next, options, target};
use crate::op::OpNames;
use crate::script::Script;
use crate::target::Address;
use kvant_env::Env;
use std::net::SocketAddr;

#[test]
fn the_top_level_runs_in_each_state_and_setup_in_the_main_one() {
    let script = "
        assert(wrk.threads == 3)
        local counter = 0
        function setup(thread)
            assert(wrk.thread_id == nil and wrk.thread == nil)
            thread:set('id', counter)
            thread:set('config', { name = 'n' .. counter, list = { 1, 2, { deep = true } }, [true] = 1.5 })
            counter = counter + 1
        end
        function init(args)
            assert(id == wrk.thread_id and counter == 0)
            assert(config.list[3].deep == true and config[true] == 1.5 and #config.list == 3)
            assert(wrk.thread:get('id') == id)
            wrk.thread:set('own', 'o' .. id)
        end
        function request() return wrk.format('GET', '/' .. config.name .. own) end";
    let mut sources = load_with(script, &options(3)).expect("starts").sources();
    let lines: Vec<String> =
        sources.iter_mut().map(|source| next(source)[..9].to_owned()).collect();
    assert_eq!(lines, ["GET /n0o0", "GET /n1o1", "GET /n2o2"]);
}

#[test]
fn values_of_threads_are_readable_afterwards() {
    let script = "
        local threads = {}
        function setup(thread) table.insert(threads, thread) end
        function init() requests = 0 end
        function request() requests = requests + 1 return wrk.request() end
        function done()
            local counts = {}
            for i, thread in ipairs(threads) do counts[i] = thread:get('requests') end
            assert(table.concat(counts, ',') == '6,4', table.concat(counts, ','))
            assert(threads[1]:get('absent') == nil)
        end";
    let mut script = load_with(script, &options(2)).expect("starts");
    let mut sources = script.sources();
    for source in &mut sources {
        (0..4).for_each(|_| drop(next(source)));
    }
    next(&mut sources[0]);
    // After the run the sources are dropped, but not their states.
    drop(sources);
    script.done(&super::outcomes::outcome(&[])).expect("the counts are right");
}

#[test]
fn a_thread_can_stop_itself() {
    let script = "
        local seen = 0
        function response() seen = seen + 1 if seen == 2 then wrk.thread:stop() end end";
    let mut sources = load_with(script, &options(2)).expect("starts").sources();
    let view = crate::source::ResponseView { status: 200, headers: &[], body: b"" };
    sources[0].observe(&view).expect("first");
    assert!(!sources[0].is_stopped());
    sources[0].observe(&view).expect("second");
    assert!(sources[0].is_stopped() && !sources[1].is_stopped());
}

#[test]
fn threads_connect_to_the_address_of_the_script() {
    let script = "
        function setup(thread)
            first = first or tostring(thread.addr)
            assert(tostring(wrk.addrs[1]) == '127.0.0.1:8080' and first == '127.0.0.1:8080')
            local addrs = wrk.lookup('127.0.0.1', second and '7' or 'http')
            assert(#addrs == 1)
            thread.addr = addrs[1]
            second = true
        end
        function init() wrk.path = '/' .. tostring(wrk.thread.addr) end";
    let mut sources = load_with(script, &options(2)).expect("starts").sources();
    let tcp = |text: &str| Some(Address::Tcp(text.parse::<SocketAddr>().expect("an address")));
    assert_eq!(
        [sources[0].address(), sources[1].address()],
        [tcp("127.0.0.1:80"), tcp("127.0.0.1:7")]
    );
    assert!(next(&mut sources[1]).starts_with("GET /127.0.0.1:7 "));
    assert_eq!(load("").sources()[0].address(), None, "the target's own");
}

#[test]
fn connect_reports_whether_an_address_accepts() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let open = listener.local_addr().expect("bound").port();
    let script = |expected: bool| {
        format!("assert(wrk.connect(wrk.lookup(wrk.host, wrk.port)[1]) == {expected})")
    };
    let mut options = options(1);
    options.targets = vec![target(open, "/")];
    load_with(&script(true), &options).expect("connects");
    drop(listener);
    load_with(&script(false), &options).expect("is refused");
}

#[test]
fn modules_are_found_beside_the_script() {
    let dir = std::env::temp_dir().join(format!("kvant-load-script-{}", std::process::id()));
    let env = Env::posix();
    env.fs.create_dir_all(&dir).expect("a directory");
    let write = |name: &str, text: &str| {
        let file = env.fs.create(&dir.join(name)).expect("a file");
        file.write_all_at(text.as_bytes(), 0).expect("written");
    };
    write("keys.lua", "return { next = function() return 'k1' end }");
    write(
        "put.lua",
        "#!/usr/bin/env wrk\nlocal keys = require('keys') function request() return wrk.format('PUT', '/' .. keys.next()) end",
    );
    let script = Script::load(&dir.join("put.lua"), &options(1), &env);
    env.fs.remove_dir_all(&dir).expect("removed");
    let mut sources = script.expect("starts").sources();
    assert!(next(&mut sources[0]).starts_with("PUT /k1 "));
}

#[test]
fn sources_can_be_moved_to_other_threads() {
    let script = "local n = 0 function request() n = n + 1 return wrk.format('GET', '/' .. n) end";
    let sources = load_with(script, &options(2)).expect("starts").sources();
    let joined: Vec<String> = std::thread::scope(|scope| {
        let workers = sources.into_iter().map(|mut source| {
            scope.spawn(move || (0..1_000).map(|_| next(&mut source)).last().unwrap_or_default())
        });
        let workers: Vec<_> = workers.collect();
        workers.into_iter().map(|worker| worker.join().expect("no panic")).collect()
    });
    assert!(joined[0].starts_with("GET /1001 ") && joined[1].starts_with("GET /1000 "));
}

#[test]
fn kinds_are_common_to_all_threads() {
    let mut options = options(2);
    options.ops = OpNames::default();
    let script = "wrk.tag = 'both' function request() return wrk.format() end";
    let mut sources = load_with(script, &options).expect("starts").sources();
    let mut op = |thread: usize| sources[thread].next(0).expect("a request").requests[0].op;
    assert_eq!(op(0), op(1));
    assert_eq!(options.ops.all(), ["both"]);
}

#[test]
fn time_is_in_microseconds() {
    load("local a = wrk.time_us() assert(a > 1.6e15 and a < 1e17, a) assert(wrk.time_us() >= a)");
}
