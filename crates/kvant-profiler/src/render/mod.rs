//! Recordings as files that other programs and people read.
