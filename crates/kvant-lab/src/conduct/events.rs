//! Events of a Kvant: reads the stream of `/v0/events` and joins begin and end of each event.

use super::http::{self, Server, Stream};
use crate::record::EventFacts;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::time::Duration;

const CONNECT_WAIT_MAX: Duration = Duration::from_secs(5);

/// The `data` of an event: see docs/latency.md.
#[derive(Deserialize)]
struct Data {
    span: u64,
    start_ns: u64,
    duration_us: Option<f64>,
    fields: BTreeMap<String, serde_json::Value>,
}

/// Opens the stream; it begins with the events in progress.
pub(super) fn open(server: &Server) -> io::Result<Stream> {
    let mut stream = server.connect(CONNECT_WAIT_MAX)?;
    server.send(&mut stream, "GET", "/v0/events")?;
    Ok(stream)
}

/// Reads until the stream ends or is shut down. Returns the events in order of their start.
pub(super) fn read(mut stream: Stream) -> Vec<EventFacts> {
    let mut rest = Vec::new();
    let mut joined = Joined::default();
    match http::read_head(&mut stream, &mut rest) {
        Ok((response, _)) if response.status == 200 => {
            joined.read(BufReader::new(Cursor::new(rest).chain(stream)));
        }
        // The subject died, or refused: there are no events.
        Ok(_) | Err(_) => {}
    }
    let mut events: Vec<EventFacts> = joined.events.into_values().collect();
    events.sort_by_key(|event| event.start_ns);
    events
}

/// Events by span.
#[derive(Default)]
struct Joined {
    events: BTreeMap<u64, EventFacts>,
}

impl Joined {
    fn read(&mut self, stream: impl BufRead) {
        let mut kind = String::new();
        for line in stream.lines() {
            // A stream that is shut down may end within a line.
            let Ok(line) = line else { return };
            if let Some(name) = line.strip_prefix("event: ") {
                kind = name.to_owned();
            } else if let Some(data) = line.strip_prefix("data: ")
                && let Ok(data) = serde_json::from_str::<Data>(data)
            {
                self.add(&kind, data);
            }
        }
    }

    fn add(&mut self, kind: &str, data: Data) {
        let end_ns = data.duration_us.map(|us| data.start_ns + (us * 1e3).round() as u64);
        let event = self.events.entry(data.span).or_default();
        event.kind = kind.to_owned();
        event.start_ns = data.start_ns;
        event.end_ns = end_ns.or(event.end_ns);
        event.fields.extend(data.fields);
    }
}

#[cfg(test)]
mod tests;
