//! Threads in scripts: `setup(thread)` in the main state, `wrk.thread` in a thread's own.
//!
//! 1. Values are copied between states: no state holds a reference into another one.
//! 2. A thread handle does not keep its state alive, as a state may hold a handle of itself.

use super::address::AddressHandle;
use crate::target::Address;
use kvant_base::lock::NamedMutex;
use mlua::{
    AnyUserData, Lua, MetaMethod, UserData, UserDataFields, UserDataMethods, Value, WeakLua,
};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Deepest nesting of tables that are copied to another state.
const DEPTH_MAX: usize = 100;

/// Shared by a thread's source and the handles of scripts.
pub(super) struct ThreadShared {
    is_stopped: AtomicBool,
    address: NamedMutex<Option<Address>>,
    default_address: Option<Address>,
    state: WeakLua,
}

impl ThreadShared {
    /// For the thread with this state, which connects to `default_address` unless a script sets
    /// another one.
    pub(super) fn new(state: &Lua, default_address: Option<Address>) -> ThreadShared {
        ThreadShared {
            is_stopped: AtomicBool::new(false),
            address: NamedMutex::new("script_address", default_address.clone()),
            default_address,
            state: state.weak(),
        }
    }

    /// The address that a script set, if it differs from the default.
    pub(super) fn chosen_address(&self) -> Option<Address> {
        self.address().filter(|address| Some(address) != self.default_address.as_ref())
    }

    /// Whether a script called `thread:stop()`.
    pub(super) fn is_stopped(&self) -> bool {
        // No other memory depends on the flag.
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

/// A thread in a script.
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
            copy(&value, lua, 0)
        });
        methods.add_method("set", |_, this, (name, value): (String, Value)| {
            let state = this.0.state()?;
            state.globals().set(name, copy(&value, &state, 0)?)
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

/// Copies a value into the state `to`.
fn copy(value: &Value, to: &Lua, depth: usize) -> mlua::Result<Value> {
    Ok(match value {
        Value::Nil => Value::Nil,
        Value::Boolean(value) => Value::Boolean(*value),
        Value::Integer(value) => Value::Number(*value as f64),
        Value::Number(value) => Value::Number(*value),
        Value::String(text) => Value::String(to.create_string(text.as_bytes())?),
        Value::Table(_) if depth == DEPTH_MAX => {
            return Err(failed(&format!(
                "cannot transfer tables nested deeper than {DEPTH_MAX} to thread"
            )));
        }
        Value::Table(table) => {
            let copied = to.create_table()?;
            for pair in table.pairs::<Value, Value>() {
                let (key, value) = pair?;
                copied.raw_set(copy(&key, to, depth + 1)?, copy(&value, to, depth + 1)?)?;
            }
            Value::Table(copied)
        }
        other => {
            return Err(failed(&format!("cannot transfer '{}' to thread", other.type_name())));
        }
    })
}

fn failed(message: &str) -> mlua::Error {
    mlua::Error::RuntimeError(message.to_owned())
}

/// The name of a type in Lua 5.1, which has no integers.
fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Integer(_) => "number",
        other => other.type_name(),
    }
}
