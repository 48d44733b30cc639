//! The part of Lua's library `debug` that scripts use and that cannot break the state: `traceback`, and `getinfo` as far as it
//! says where code stands.

use mlua::debug::Debug;
use mlua::{Function, Lua, Table, Value};

/// Puts `debug` into `lua`.
pub(super) fn install(lua: &Lua) -> mlua::Result<()> {
    let library = lua.create_table()?;
    library.set("traceback", lua.create_function(traceback)?)?;
    library.set("getinfo", lua.create_function(getinfo)?)?;
    let loaded: Table = lua.globals().get::<Table>("package")?.get("loaded")?;
    loaded.set("debug", &library)?;
    lua.globals().set("debug", library)
}

fn traceback(lua: &Lua, (message, level): (Option<String>, Option<usize>)) -> mlua::Result<mlua::LuaString> {
    lua.traceback(message.as_deref(), level.unwrap_or(1))
}

/// `debug.getinfo([level | function [, what]])`; all fields are given, whichever are asked for.
fn getinfo(lua: &Lua, (subject, _what): (Value, Option<Value>)) -> mlua::Result<Option<Table>> {
    if let Value::Function(function) = subject {
        let info = lua.create_table()?;
        write_place(&info, &function)?;
        return Ok(Some(info));
    }
    let level = subject.as_usize().unwrap_or(1);
    let found = lua.inspect_stack(level, |frame: &Debug| -> mlua::Result<Table> {
        let info = lua.create_table()?;
        let function = frame.function();
        write_place(&info, &function)?;
        info.set("currentline", frame.current_line().map_or(-1, |line| line as i64))?;
        info.set("name", frame.names().name.as_deref())?;
        info.set("func", function)?;
        Ok(info)
    });
    found.transpose()
}

fn write_place(info: &Table, function: &Function) -> mlua::Result<()> {
    let place = function.info();
    info.set("what", place.what)?;
    info.set("source", place.source)?;
    info.set("short_src", place.short_src)?;
    info.set("linedefined", place.line_defined)?;
    info.set("lastlinedefined", place.last_line_defined)
}
