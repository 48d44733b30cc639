//! The engines: how each is opened, and its calls behind one trait.

mod c_api;
pub(crate) mod fjall;
pub(crate) mod kvant;
pub(crate) mod leveldb;
pub(crate) mod lmdb;
pub(crate) mod redb;
pub(crate) mod rocksdb;
