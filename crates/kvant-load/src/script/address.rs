//! Addresses as scripts see them: `wrk.lookup`, `wrk.connect`, `thread.addr`.

use crate::target::Address;
use mlua::{Lua, MetaMethod, UserData, UserDataMethods, UserDataRef, Value};
use std::net::{TcpStream, ToSocketAddrs};
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Timeout of `wrk.connect`.
const CONNECT_WAIT: Duration = Duration::from_secs(10);

/// An address in a script.
#[derive(Clone, Debug)]
pub(super) struct AddressHandle(pub(super) Address);

impl UserData for AddressHandle {
    fn add_methods<M: UserDataMethods<Self>>(methods: &mut M) {
        // As from getnameinfo, without brackets around IPv6 addresses.
        methods.add_meta_method(MetaMethod::ToString, |_, AddressHandle(address), ()| {
            Ok(match address {
                Address::Tcp(address) => format!("{}:{}", address.ip(), address.port()),
                Address::Unix(path) => path.display().to_string(),
            })
        });
    }
}

/// `wrk.lookup(host, service)`: a table of addresses.
pub(super) fn lookup(
    _: &Lua,
    (host, service): (String, Option<Value>),
) -> mlua::Result<Vec<AddressHandle>> {
    let service = match service {
        Some(Value::Nil) | None => "0".to_owned(),
        Some(value) => value.to_string()?,
    };
    let failed =
        |why: &str| mlua::Error::RuntimeError(format!("unable to resolve {host}:{service}: {why}"));
    let port = match service.as_str() {
        "http" => 80,
        "https" => 443,
        number => {
            number.parse().map_err(|_| failed("the service is neither a port, http nor https"))?
        }
    };
    let addresses =
        (host.as_str(), port).to_socket_addrs().map_err(|error| failed(&error.to_string()))?;
    Ok(addresses.map(|address| AddressHandle(Address::Tcp(address))).collect())
}

/// `wrk.connect(addr)`: whether the address accepts a connection.
pub(super) fn connect(_: &Lua, address: UserDataRef<AddressHandle>) -> mlua::Result<bool> {
    Ok(match &address.0 {
        Address::Tcp(address) => TcpStream::connect_timeout(address, CONNECT_WAIT).is_ok(),
        Address::Unix(path) => UnixStream::connect(path).is_ok(),
    })
}
