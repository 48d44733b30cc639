//! Keeps headers and body of one answer for a script.

use super::{BODY_COLLECTED_BYTES_MAX, Fault, HEADERS_MAX};
use crate::source::ResponseView;
use httparse::Header;

/// Headers and body of the answer that was last begun. Its memory stays for the next one.
#[derive(Debug, Default)]
pub(crate) struct Collector {
    /// Names and values, one after the other.
    text: Vec<u8>,
    /// Lengths of each name and value in `text`.
    lengths_bytes: Vec<(usize, usize)>,
    body: Vec<u8>,
}

impl Collector {
    /// Forgets the answer before, keeps the headers of a new one.
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

    pub(super) fn add_body(&mut self, data: &[u8]) -> Result<(), Fault> {
        if self.body.len() + data.len() > BODY_COLLECTED_BYTES_MAX {
            return Err(Fault::BodyTooBig);
        }
        self.body.extend_from_slice(data);
        Ok(())
    }

    /// Shows the complete answer, whose status the parser told, to `look`.
    pub(crate) fn with_view<R>(&self, status: u16, look: impl FnOnce(&ResponseView<'_>) -> R) -> R {
        let mut headers: [(&str, &[u8]); HEADERS_MAX] = [("", &[]); HEADERS_MAX];
        let mut rest = self.text.as_slice();
        for (header, &(name_bytes, value_bytes)) in headers.iter_mut().zip(&self.lengths_bytes) {
            let (name, after_name) = rest.split_at(name_bytes);
            let (value, after_value) = after_name.split_at(value_bytes);
            *header = (str::from_utf8(name).expect("httparse lets only tokens be names"), value);
            rest = after_value;
        }
        look(&ResponseView {
            status,
            headers: &headers[..self.lengths_bytes.len()],
            body: &self.body,
        })
    }
}
