//! (follows)
use super::*;
pub struct DeterministicSpawner {}
impl Spawner for DeterministicSpawner {
    fn spawn(&self, _: Arc<dyn Task>) -> Arc<dyn TaskHandle> {
        unimplemented!()
    }
    fn wait_until(&self, _: &Signal, _: Option<u64>, _: &mut dyn FnMut() -> bool) -> bool {
        unimplemented!()
    }
}
