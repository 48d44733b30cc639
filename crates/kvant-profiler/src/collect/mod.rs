//! The samplers, and the session that runs them.
