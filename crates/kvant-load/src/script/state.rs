//! A Lua state with what a script finds in it, and the entries through which it is called.

use super::address::{self, AddressHandle};
use super::{Start, failure, scheme};
use crate::op::{OpId, OpNames};
use crate::target::Target;
use kvant_base::lock::NamedMutex;
use kvant_base::{Error, Result};
use kvant_env::Clock;
use mlua::{Function, Lua, LuaOptions, StdLib, Table};
use std::sync::Arc;

const PRELUDE: &str = include_str!("prelude.lua");
/// Begins messages that Lua locates in the prelude, which says nothing to who wrote the script.
pub(super) const PRELUDE_NAME: &str = "[wrk]";

/// Garbage of requests is collected when memory has grown to this per cent of what was live, and in
/// steps twice as large as LuaJIT's: a state is small, and at the default of 200 it would be walked
/// all over again every few hundred requests. Much more than this and memory creeps up, because
/// what is allocated during a collection survives it and counts as live.
const COLLECTOR_PAUSE: u32 = 400;
const COLLECTOR_STEP_MULTIPLIER: u32 = 400;
/// Scripts that hold more than this when they start keep LuaJIT's default, so that they do not need
/// four times as much.
const COLLECTOR_LIVE_MAX_KIB: u32 = 64 * 1024;

/// A state with all libraries of LuaJIT, as wrk has them: scripts may use `ffi` and `debug`.
#[expect(
    unsafe_code,
    reason = "mlua opens ffi and debug only where the caller answers for the script"
)]
fn new_lua() -> Lua {
    // SAFETY: a script is a program that the user starts, with the same rights as this process and
    // in place of wrk: what it does to memory through `ffi` or `debug` is its own doing, as under
    // wrk. The generator stores nothing that others rely on.
    unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::default()) }
}

/// One state.
pub(super) struct State {
    pub(super) lua: Lua,
    /// What the prelude returned.
    entries: Table,
    /// Kinds by the number that the prelude has for a tag, less one.
    pub(super) tags: TagTable,
    /// For messages.
    script_name: String,
}

/// Kinds of requests in the order in which a script named them.
pub(super) type TagTable = Arc<NamedMutex<Vec<OpId>>>;

impl State {
    /// A state for `thread`, or the main state. The script has not run in it yet.
    pub(super) fn new(start: &Start<'_>, thread: Option<usize>) -> Result<State> {
        let tags = TagTable::new(NamedMutex::new("script_tags", Vec::new()));
        let lua = new_lua();
        let entries = prepare(&lua, start, thread, &tags)
            .map_err(|error| failure::in_script(start.name, None, &error))?;
        Ok(State { lua, entries, tags, script_name: start.name.to_owned() })
    }

    /// Runs the top level of the script.
    pub(super) fn run(&self, source: &[u8]) -> Result<()> {
        let chunk = self.lua.load(source).set_name(format!("@{}", self.script_name));
        let outcome = chunk.set_mode(mlua::chunk::ChunkMode::Text).exec();
        outcome.map_err(|error| failure::in_script(&self.script_name, None, &error))
    }

    /// An entry of the prelude.
    pub(super) fn entry(&self, name: &str) -> Result<Function> {
        self.entries.get(name).map_err(|error| self.failed(name, &error))
    }

    /// Calls an entry of the prelude, which is called `function` in messages.
    pub(super) fn call<R: mlua::FromLuaMulti>(
        &self,
        name: &str,
        args: impl mlua::IntoLuaMulti,
    ) -> Result<R> {
        self.entry(name)?.call(args).map_err(|error| self.failed(name, &error))
    }

    /// Whether the script defines the global function `name` (now).
    pub(super) fn defines(&self, name: &str) -> Result<bool> {
        self.call("defines", name)
    }

    /// What went wrong in the script's function `name`.
    pub(super) fn failed(&self, name: &str, error: &mlua::Error) -> Error {
        failure::in_script(&self.script_name, Some(name), error)
    }

    /// `init`'s table: the first argument is number 0.
    pub(super) fn args<'a>(&self, args: impl Iterator<Item = &'a str>) -> Result<Table> {
        self.lua.create_table_from(args.enumerate()).map_err(|error| self.failed("init", &error))
    }

    /// Sets the pace of the collector; collects what the start left.
    pub(super) fn tune_collector(&self) -> Result<()> {
        self.call(
            "tune_collector",
            (COLLECTOR_LIVE_MAX_KIB, COLLECTOR_PAUSE, COLLECTOR_STEP_MULTIPLIER),
        )
    }
}

fn prepare(
    lua: &Lua,
    start: &Start<'_>,
    thread: Option<usize>,
    tags: &TagTable,
) -> mlua::Result<Table> {
    let options = start.options;
    let target = &options.targets[0];
    let run = target_table(lua, target)?;
    let headers = lua.create_table()?;
    for (name, value) in &options.headers {
        headers.set(name.as_str(), value.as_str())?;
    }
    run.set("headers", headers)?;
    run.set("thread_id", thread)?;
    run.set("threads", options.thread_count)?;
    run.set("directory", start.directory())?;
    run.set("seed", start.seed(thread))?;
    let addresses = target.addresses.iter().cloned().map(AddressHandle);
    run.set("addrs", lua.create_sequence_from(addresses)?)?;
    run.set("lookup", lua.create_function(address::lookup)?)?;
    run.set("connect", lua.create_function(address::connect)?)?;
    run.set("time_us", time_us(lua, Arc::clone(&start.clock))?)?;
    run.set("intern", intern(lua, options.ops.clone(), Arc::clone(tags))?)?;
    lua.load(PRELUDE).set_name(format!("={PRELUDE_NAME}")).call(run)
}

/// The fields of `wrk` that belong to a target.
pub(super) fn target_table(lua: &Lua, target: &Target) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("scheme", scheme(target))?;
    table.set("host", target.host.as_str())?;
    table.set("port", target.port.map(|port| port.to_string()))?;
    table.set("path", target.path.as_str())?;
    table.set("authority", target.authority.as_str())?;
    Ok(table)
}

/// `wrk.time_us()`: the time of day, which never steps back.
fn time_us(lua: &Lua, clock: Arc<dyn Clock>) -> mlua::Result<Function> {
    let start_wall_us = clock.wall_ms() * 1_000;
    let start_ns = clock.monotonic_ns();
    lua.create_function(move |_, ()| {
        let since_start_us = clock.monotonic_ns().saturating_sub(start_ns) / 1_000;
        Ok((start_wall_us + since_start_us) as f64)
    })
}

/// Gives a tag its number, from 1.
fn intern(lua: &Lua, ops: OpNames, tags: TagTable) -> mlua::Result<Function> {
    lua.create_function(move |_, name: String| {
        let op = ops.intern(&name);
        let mut tags = tags.lock();
        let at = tags.iter().position(|known| *known == op).unwrap_or(tags.len());
        if at == tags.len() {
            tags.push(op);
        }
        Ok(at + 1)
    })
}
