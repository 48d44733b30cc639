//! (follows)
