//! Threads as scripts see them: `setup(thread)` in the main state, `wrk.thread` in each thread's
//! own.
//!
//! 1. Values go from one state to another by copying, so that no state ever holds something of
//!    another.
//! 2. A thread handle does not keep the state alive that it leads to: a state may hold handles of
//!    itself.

use super::address::AddressHandle;
use crate::target::Address;
use kvant_base::lock::NamedMutex;
use mlua::{
    AnyUserData, Lua, MetaMethod, Table, UserData, UserDataFields, UserDataMethods, Value, WeakLua,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// How deep tables may be nested in what is handed to another state.
const DEPTH_MAX: usize = 100;

/// What a thread's source and the handles of scripts share.
pub(super) struct ThreadShared {
    is_stopped: AtomicBool,
    address: NamedMutex<Option<Address>>,
    default_address: Option<Address>,
    state: WeakLua,
}

impl ThreadShared {
    /// Of the thread whose state is `state`, and whose connections go to `default_address` unless a
    /// script says otherwise.
    pub(super) fn new(state: &Lua, default_address: Option<Address>) -> ThreadShared {
        ThreadShared {
            is_stopped: AtomicBool::new(false),
            address: NamedMutex::new("script_address", default_address.clone()),
            default_address,
            state: state.weak(),
        }
    }

    /// The address that a script gave it in place of the one it had.
    pub(super) fn chosen_address(&self) -> Option<Address> {
        self.address().filter(|address| Some(address) != self.default_address.as_ref())
    }

    /// Whether a script called `thread:stop()`.
    pub(super) fn is_stopped(&self) -> bool {
        // Nothing else is published by it.
        self.is_stopped.load(Ordering::Relaxed)
    }

    fn address(&self) -> Option<Address> {
        self.address.lock().clone()
    }

    fn set_address(&self, address: Address) {
        *self.address.lock() = Some(address);
    }

    fn state(&self) -> mlua::Result<Lua> {
        self.state.try_upgrade().ok_or_else(|| failed("the thread has ended"))
    }
}

/// A thread in the hands of a script.
#[derive(Clone)]
pub(super) struct ThreadHandle(pub(super) Arc<ThreadShared>);

impl UserData for ThreadHandle {
    fn add_fields<F: UserDataFields<Self>>(fields: &mut F) {
        fields.add_field_method_get("addr", |_, this| Ok(this.0.address().map(AddressHandle)));
        fields.add_field_method_set("addr", |_, this, value: Value| {
            let address = value.as_userdata().and_then(address_of);
            let Some(address) = address else {
                let kind = type_name(&value);
                return Err(failed(&format!(
                    "thread.addr takes an address of wrk.lookup, not a {kind}"
                )));
            };
            this.0.set_address(address);
            Ok(())
        });
    }

    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        methods.add_method("get", |lua, this, name: String| {
            let value: Value = this.0.state()?.globals().get(name)?;
            carry_out(&value, 0)?.carry_in(lua)
        });
        methods.add_method("set", |_, this, (name, value): (String, Value)| {
            let carried = carry_out(&value, 0)?;
            let state = this.0.state()?;
            state.globals().set(name, carried.carry_in(&state)?)
        });
        methods.add_method("stop", |_, this, ()| {
            this.0.is_stopped.store(true, Ordering::Relaxed);
            Ok(())
        });
        methods.add_meta_method(
            MetaMethod::NewIndex,
            |_, _, (_name, value): (Value, Value)| -> mlua::Result<()> {
                Err(failed(&format!("cannot set '{}' on thread", type_name(&value))))
            },
        );
    }
}

fn address_of(data: &AnyUserData) -> Option<Address> {
    data.borrow::<AddressHandle>().ok().map(|handle| handle.0.clone())
}

/// A value between two states.
enum Carried {
    Nil,
    Boolean(bool),
    Number(f64),
    Text(Vec<u8>),
    Entries(Vec<(Carried, Carried)>),
}

fn carry_out(value: &Value, depth: usize) -> mlua::Result<Carried> {
    Ok(match value {
        Value::Nil => Carried::Nil,
        Value::Boolean(value) => Carried::Boolean(*value),
        Value::Integer(value) => Carried::Number(*value as f64),
        Value::Number(value) => Carried::Number(*value),
        Value::String(text) => Carried::Text(text.as_bytes().to_vec()),
        Value::Table(_) if depth == DEPTH_MAX => {
            return Err(failed(&format!(
                "cannot transfer tables nested deeper than {DEPTH_MAX} to thread"
            )));
        }
        Value::Table(table) => Carried::Entries(carry_out_entries(table, depth)?),
        other => {
            return Err(failed(&format!("cannot transfer '{}' to thread", other.type_name())));
        }
    })
}

fn carry_out_entries(table: &Table, depth: usize) -> mlua::Result<Vec<(Carried, Carried)>> {
    let mut entries = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (key, value) = pair?;
        entries.push((carry_out(&key, depth + 1)?, carry_out(&value, depth + 1)?));
    }
    Ok(entries)
}

impl Carried {
    fn carry_in(self, lua: &Lua) -> mlua::Result<Value> {
        Ok(match self {
            Carried::Nil => Value::Nil,
            Carried::Boolean(value) => Value::Boolean(value),
            Carried::Number(value) => Value::Number(value),
            Carried::Text(text) => Value::String(lua.create_string(text)?),
            Carried::Entries(entries) => {
                let table = lua.create_table_with_capacity(0, entries.len())?;
                for (key, value) in entries {
                    table.raw_set(key.carry_in(lua)?, value.carry_in(lua)?)?;
                }
                Value::Table(table)
            }
        })
    }
}

fn failed(message: &str) -> mlua::Error {
    mlua::Error::RuntimeError(message.to_owned())
}

/// As Lua 5.1 names it: it knows no integers.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        other => other.type_name(),
    }
}
