//! Understands answers as they arrive: status line, headers, framing of the body.
