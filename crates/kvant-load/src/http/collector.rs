//! Keeps the headers and body of one response for a script.

use super::framing::{BODY_COLLECTED_BYTES_MAX, HEADERS_MAX, ParseError};
use crate::source::ResponseView;
use httparse::Header;

/// The headers and body of the latest response. The next one reuses the memory.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    /// Names and values without separators.
    text: Vec<u8>,
    /// The lengths of each name and value in `text`.
    lengths_bytes: Vec<(usize, usize)>,
    body: Vec<u8>,
}

impl Collector {
    /// Replaces the previous response by one with these headers.
    pub(super) fn start(&mut self, headers: &[Header<'_>]) {
        self.text.clear();
        self.lengths_bytes.clear();
        self.body.clear();
        for header in headers {
            self.text.extend_from_slice(header.name.as_bytes());
            self.text.extend_from_slice(header.value);
            self.lengths_bytes.push((header.name.len(), header.value.len()));
        }
    }

    pub(super) fn add_body(&mut self, data: &[u8]) -> Result<(), ParseError> {
        if self.body.len() + data.len() > BODY_COLLECTED_BYTES_MAX {
            return Err(ParseError::BodyTooBig);
        }
        self.body.extend_from_slice(data);
        Ok(())
    }

    pub(crate) fn with_view<R>(&self, status: u16, look: impl FnOnce(&ResponseView<'_>) -> R) -> R {
        let mut headers: [(&str, &[u8]); HEADERS_MAX] = [("", &[]); HEADERS_MAX];
        let mut rest = self.text.as_slice();
        for (header, &(name_bytes, value_bytes)) in headers.iter_mut().zip(&self.lengths_bytes) {
            let (name, after_name) = rest.split_at(name_bytes);
            let (value, after_value) = after_name.split_at(value_bytes);
            *header = (str::from_utf8(name).expect("httparse accepts only tokens as names"), value);
            rest = after_value;
        }
        let headers = &headers[..self.lengths_bytes.len()];
        look(&ResponseView { status, headers, body: &self.body })
    }
}
