//! (follows)
/// Something that waiters wait for.
#[derive(Default)]
pub struct Signal {}
impl Signal {
    pub fn new() -> Signal { Signal {} }
    /// Wakes all waiters, which look again.
    pub fn notify_all(&self) { unimplemented!() }
}
