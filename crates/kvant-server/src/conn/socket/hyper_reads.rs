//! Hyper's reads from a socket, and the memory for them.

use kvant_base::Reservation;

#[derive(Default)]
pub(in crate::conn) struct HyperReads {
    /// Something was received, and nothing sent since.
    pub(in crate::conn) received_since_write: bool,
    /// Hyper found a head too large. Its response was discarded: the status may be another.
    pub(in crate::conn) is_too_large: bool,
    pub(in crate::conn) head_bytes: usize,
    /// Memory of hyper's read buffers, once they may grow, until hyper returns the connection.
    pub(in crate::conn) grown_buffers: Option<Reservation>,
    /// The last read filled its limit.
    pub(in crate::conn) fills_buffer: bool,
    /// There was no memory for the rest of a head.
    pub(in crate::conn) lacks_memory: bool,
}
