//! Kvant over HTTP.
