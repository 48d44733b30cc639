//! (follows)
use super::*;
pub struct ThreadSpawner {}
impl ThreadSpawner { pub fn new() -> ThreadSpawner { ThreadSpawner {} } }
impl Spawner for ThreadSpawner {
    fn spawn(&self, _: Arc<dyn Task>) -> Arc<dyn TaskHandle> { unimplemented!() }
    fn wait_until(&self, _: &Signal, _: Option<u64>, _: &mut dyn FnMut() -> bool) -> bool { unimplemented!() }
}
