//! What happens to unsynced changes in a simulated crash.

/// What a crash does to unsynced changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CrashStyle {
    /// All are lost.
    DropUnsynced,
    /// All survive, as after the end of the process alone.
    KeepAll,
    /// Each is dropped, kept, reordered or torn, chosen by the seed.
    Random,
}
