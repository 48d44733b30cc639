//! Builds the bytes of requests.
