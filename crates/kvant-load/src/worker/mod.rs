//! The event loop of one thread.
