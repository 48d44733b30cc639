//! The formats of recordings.

use super::{collapsed, html, pprof};
use crate::recording::{self, Kind, Recording};

/// A format of recordings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A page with flame graphs.
    Html,
    /// Kvant's own, which keeps everything.
    Kprof,
    /// For `go tool pprof` and others.
    Pprof,
    /// The stacks of one kind, a line each.
    Collapsed(Kind),
}

impl Format {
    /// The names of all formats.
    pub const NAMES: [&str; 4] = ["html", "kprof", "pprof", "collapsed"];

    /// The format with this name; `kind` is that of collapsed stacks.
    pub fn parse(name: &str, kind: Kind) -> Option<Format> {
        match name {
            "html" => Some(Format::Html),
            "kprof" => Some(Format::Kprof),
            "pprof" => Some(Format::Pprof),
            "collapsed" => Some(Format::Collapsed(kind)),
            _ => None,
        }
    }

    /// How names of files in this format end.
    pub fn ending(self) -> &'static str {
        match self {
            Format::Html => "html",
            Format::Kprof => "kprof",
            Format::Pprof => "pb.gz",
            Format::Collapsed(_) => "collapsed",
        }
    }

    /// The value of `Content-Type`.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Html => "text/html; charset=utf-8",
            Format::Kprof => "application/vnd.kvant.profile",
            Format::Pprof => "application/gzip",
            Format::Collapsed(_) => "text/plain; charset=utf-8",
        }
    }

    /// Encodes a recording.
    pub fn encode(self, recording: &Recording) -> Vec<u8> {
        match self {
            Format::Html => html(recording).into_bytes(),
            Format::Kprof => recording::encode(recording),
            Format::Pprof => pprof(recording),
            Format::Collapsed(kind) => collapsed(recording, kind).into_bytes(),
        }
    }
}
