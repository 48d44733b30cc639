//! The text that wrk2 prints, byte for byte in layout.
