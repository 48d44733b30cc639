//! Hyper's reads from a socket, and the memory for them.

use kvant_base::Reservation;

/// The state of hyper's reads, and their memory.
#[derive(Default)]
pub(in crate::conn) struct HyperReads {
    pub(in crate::conn) first_line: FirstLine,
    /// The current head has a body length that hyper rejects as too large a head.
    pub(in crate::conn) has_huge_length: bool,
    pub(in crate::conn) head_bytes: usize,
    /// Memory of hyper's read buffers, once they may grow, until hyper returns the connection.
    pub(in crate::conn) grown_buffers: Option<Reservation>,
    /// The last read filled its limit.
    pub(in crate::conn) fills_buffer: bool,
    /// There was no memory for the rest of a head.
    pub(in crate::conn) lacks_memory: bool,
}

/// The first line received since the last response.
#[derive(Default)]
pub(in crate::conn) struct FirstLine {
    pub(in crate::conn) bytes: usize,
    pub(in crate::conn) has_ended: bool,
}

impl FirstLine {
    pub(in crate::conn) fn receive(&mut self, bytes: &[u8]) {
        if !self.has_ended {
            let end = bytes.iter().position(|byte| *byte == b'\n');
            self.has_ended = end.is_some();
            self.bytes += end.unwrap_or(bytes.len());
        }
    }
}
