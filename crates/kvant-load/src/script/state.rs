//! A Lua state with the interface for scripts, and the entries that call the script.

use super::address::{self, AddressHandle};
use super::failure::{self, PRELUDE_NAME};
use super::start::{Start, scheme};
use crate::op::{OpId, OpNames};
use crate::target::Target;
use kvant_base::lock::NamedMutex;
use kvant_base::{Error, Result};
use kvant_env::Clock;
use mlua::{Function, Lua, LuaOptions, StdLib, Table};
use std::sync::Arc;

const PRELUDE: &str = include_str!("prelude.lua");

/// A collection starts when memory has grown to this percentage of the live memory, and takes steps
/// twice as large as LuaJIT's. At the default of 200 a small state would be traversed every few
/// hundred requests. At much more memory creeps up: objects allocated during a collection survive
/// it and count as live.
const COLLECTOR_PAUSE: u32 = 400;
const COLLECTOR_STEP_MULTIPLIER: u32 = 400;
/// Scripts with more live memory than this at their start keep LuaJIT's default instead of growing
/// fourfold.
const COLLECTOR_LIVE_MAX_KIB: u32 = 64 * 1024;

/// A state with all libraries of LuaJIT, as wrk has them: scripts may use `ffi` and `debug`.
#[expect(
    unsafe_code,
    reason = "mlua opens ffi and debug only where the caller answers for the script"
)]
fn new_lua() -> Lua {
    // SAFETY: the user runs a script as a program with the rights of this process. As under wrk, it
    // can corrupt memory through `ffi` or `debug`; the generator stores no data that others rely
    // on.
    unsafe { Lua::unsafe_new_with(StdLib::ALL, LuaOptions::default()) }
}

/// A Lua state.
pub(super) struct State {
    pub(super) lua: Lua,
    /// Returned by the prelude.
    entries: Table,
    /// Kinds by the prelude's number of their tag, less one.
    pub(super) tags: TagTable,
    /// For messages.
    script_name: String,
}

/// Kinds of requests in the order in which a script tagged them.
pub(super) type TagTable = Arc<NamedMutex<Vec<OpId>>>;

impl State {
    /// A state for `thread`, or the main state, in which the script has not run yet.
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

    /// Calls an entry of the prelude.
    pub(super) fn call<R: mlua::FromLuaMulti>(
        &self,
        name: &str,
        args: impl mlua::IntoLuaMulti,
    ) -> Result<R> {
        self.entry(name)?.call(args).map_err(|error| self.failed(name, &error))
    }

    /// Whether the script currently defines the global function `name`.
    pub(super) fn defines(&self, name: &str) -> Result<bool> {
        self.call("defines", name)
    }

    /// An error of the script's function `name`.
    pub(super) fn failed(&self, name: &str, error: &mlua::Error) -> Error {
        failure::in_script(&self.script_name, Some(name), error)
    }

    /// The table of arguments of `init`, from index 0.
    pub(super) fn args<'a>(&self, args: impl Iterator<Item = &'a str>) -> Result<Table> {
        self.lua.create_table_from(args.enumerate()).map_err(|error| self.failed("init", &error))
    }

    /// Collects garbage and configures the collector.
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

/// The fields of `wrk` that depend on the target.
pub(super) fn target_table(lua: &Lua, target: &Target) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("scheme", scheme(target))?;
    table.set("host", target.host.as_str())?;
    table.set("port", target.port.map(|port| port.to_string()))?;
    table.set("path", target.path.as_str())?;
    table.set("authority", target.authority.as_str())?;
    Ok(table)
}

/// `wrk.time_us()`: wall time that never decreases.
fn time_us(lua: &Lua, clock: Arc<dyn Clock>) -> mlua::Result<Function> {
    let start_wall_us = clock.wall_ms() * 1_000;
    let start_ns = clock.monotonic_ns();
    lua.create_function(move |_, ()| {
        let since_start_us = clock.monotonic_ns().saturating_sub(start_ns) / 1_000;
        Ok((start_wall_us + since_start_us) as f64)
    })
}

/// Numbers a tag, from 1.
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
