use super::framing::{BODY_COLLECTED_BYTES_MAX, HEADERS_MAX};
use super::*;
use kvant_env::rng::Rng;
use kvant_env::testing::entropy_seed;

/// A response and the expected result.
struct Sample {
    bytes: Vec<u8>,
    is_head: bool,
    response: Response,
    body: &'static [u8],
    headers: Vec<(&'static str, &'static [u8])>,
}

fn sample(bytes: &[u8], status: u16, keeps_alive: bool, body: &'static [u8]) -> Sample {
    let response = Response { status, keeps_alive };
    Sample { bytes: bytes.to_vec(), is_head: false, response, body, headers: Vec::new() }
}

fn to_head(sample: Sample) -> Sample {
    Sample { is_head: true, ..sample }
}

fn with_headers(sample: Sample, headers: &[(&'static str, &'static [u8])]) -> Sample {
    Sample { headers: headers.to_vec(), ..sample }
}

/// Responses that keep the connection open.
fn samples() -> Vec<Sample> {
    vec![
        with_headers(
            sample(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nX-Name: a  b \r\n\r\nhello", 200, true, b"hello"),
            &[("Content-Length", b"5"), ("X-Name", b"a  b")],
        ),
        sample(b"HTTP/1.1 201 Created\r\ncontent-length:0\r\n\r\n", 201, true, b""),
        sample(b"HTTP/1.1 200 \r\nContent-Length: 2, 2\r\nContent-Length: 2\r\n\r\nab", 200, true, b"ab"),
        sample(b"HTTP/1.1 204 No Content\r\nContent-Length: 7\r\n\r\n", 204, true, b""),
        sample(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 7\r\n\r\n", 304, true, b""),
        sample(b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 1\r\n\r\nx", 200, true, b"x"),
        with_headers(
            sample(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, Chunked\r\n\r\n3;a=b\r\nabc\r\n0b\r\nhello world\r\n0\r\nT: v\r\n\r\n",
                200,
                true,
                b"abchello world",
            ),
            &[("Transfer-Encoding", b"gzip, Chunked")],
        ),
        sample(b"HTTP/1.1 404 Not Found\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 404, true, b""),
        with_headers(
            sample(
                b"HTTP/1.1 100 Continue\r\nX: interim\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx",
                200,
                true,
                b"x",
            ),
            &[("Content-Length", b"1")],
        ),
        to_head(sample(b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n", 200, true, b"")),
        to_head(sample(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", 200, true, b"")),
        sample(b"\r\n\nHTTP/1.1 200 OK\nContent-Length: 3\n\n\n\r\n", 200, true, b"\n\r\n"),
    ]
}

/// A response with its headers and body.
type Seen = (Response, Vec<(String, Vec<u8>)>, Vec<u8>);

/// Parses the pieces.
fn feed(pieces: &[&[u8]], is_head: &[bool]) -> Result<Vec<Seen>, ParseError> {
    let mut parser = ResponseParser::default();
    let mut skipping = ResponseParser::default();
    let mut collector = Collector::default();
    let mut seen = Vec::new();
    for piece in pieces {
        let mut at = 0;
        while at < piece.len() {
            let is_head = is_head[seen.len()];
            let parsed = parser.parse(&piece[at..], is_head, Some(&mut collector))?;
            assert_eq!(skipping.parse(&piece[at..], is_head, None), Ok(parsed));
            at += parsed.consumed_bytes;
            let Some(response) = parsed.response else {
                assert_eq!(at, piece.len(), "unconsumed input although no response is complete");
                continue;
            };
            assert!(!parser.has_begun);
            seen.push(collector.with_view(response.status, |view| {
                assert_eq!(view.status, response.status);
                let headers =
                    view.headers.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec()));
                (response, headers.collect(), view.body.to_vec())
            }));
        }
    }
    Ok(seen)
}

fn check(samples: &[&Sample], pieces: &[&[u8]]) {
    let is_head: Vec<bool> = samples.iter().map(|sample| sample.is_head).collect();
    let seen = feed(pieces, &is_head).unwrap();
    assert_eq!(seen.len(), samples.len(), "{pieces:?}");
    for (sample, (response, headers, body)) in samples.iter().zip(seen) {
        let text = String::from_utf8_lossy(&sample.bytes);
        assert_eq!(response, sample.response, "{text}");
        assert_eq!(body, sample.body, "{text}");
        if !sample.headers.is_empty() {
            let expected =
                sample.headers.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec()));
            assert_eq!(headers, expected.collect::<Vec<_>>(), "{text}");
        }
    }
}

#[test]
fn responses_are_parsed_whole_in_two_pieces_and_byte_by_byte() {
    for sample in &samples() {
        let bytes = sample.bytes.as_slice();
        check(&[sample], &[bytes]);
        for cut in 1..bytes.len() {
            check(&[sample], &[&bytes[..cut], &bytes[cut..]]);
        }
        check(&[sample], &bytes.chunks(1).collect::<Vec<_>>());
    }
}

#[test]
fn pipelined_responses_are_separated_however_they_are_split() {
    let samples = samples();
    let all: Vec<&Sample> = samples.iter().collect();
    let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.bytes.clone()).collect();
    check(&all, &[&bytes]);
    check(&all, &bytes.chunks(1).collect::<Vec<_>>());
    for cut in 1..bytes.len() {
        check(&all, &[&bytes[..cut], &bytes[cut..]]);
    }
}

#[test]
fn random_responses_in_random_pieces_are_parsed() {
    let seed = std::env::var("KVANT_TEST_SEED")
        .map_or_else(|_| entropy_seed(), |seed| seed.parse().unwrap());
    println!("KVANT_TEST_SEED={seed}");
    let mut rng = Rng::new(seed);
    let samples = samples();
    for _ in 0..300 {
        let count = 1 + rng.below(20);
        let chosen: Vec<&Sample> =
            (0..count).map(|_| &samples[rng.below(samples.len() as u64) as usize]).collect();
        let bytes: Vec<u8> = chosen.iter().flat_map(|sample| sample.bytes.clone()).collect();
        let piece_bytes_max = 1 + rng.below(100);
        let mut pieces = Vec::new();
        let mut rest = bytes.as_slice();
        while !rest.is_empty() {
            let (piece, after) =
                rest.split_at(rest.len().min(1 + rng.below(piece_bytes_max) as usize));
            pieces.push(piece);
            rest = after;
        }
        check(&chosen, &pieces);
    }
}

#[test]
fn random_damage_causes_no_panic_and_no_endless_loop() {
    let seed = std::env::var("KVANT_TEST_SEED")
        .map_or_else(|_| entropy_seed(), |seed| seed.parse().unwrap());
    println!("KVANT_TEST_SEED={seed}");
    let mut rng = Rng::new(seed);
    let samples = samples();
    for _ in 0..5_000 {
        let sample = &samples[rng.below(samples.len() as u64) as usize];
        let mut bytes = sample.bytes.clone();
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
        }
        let pieces: Vec<&[u8]> = bytes.chunks(1 + rng.below(20) as usize).collect();
        // Damage may split a response into several, but into no more than it has bytes.
        drop(feed(&pieces, &vec![sample.is_head; bytes.len()]));
    }
}

#[test]
fn closing_connections_are_detected() {
    let closing: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    ];
    for bytes in closing {
        let parsed = ResponseParser::default().parse(bytes, false, None).unwrap();
        assert!(!parsed.response.unwrap().keeps_alive, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn a_response_without_length_ends_with_the_connection() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nall of this";
    for cut in 0..bytes.len() {
        let mut parser = ResponseParser::default();
        let mut collector = Collector::default();
        for piece in [&bytes[..cut], &bytes[cut..]] {
            let parsed = parser.parse(piece, false, Some(&mut collector)).unwrap();
            assert_eq!(parsed, Parsed { consumed_bytes: piece.len(), response: None });
        }
        assert_eq!(parser.end(), Ok(Some(Response { status: 200, keeps_alive: false })));
        collector.with_view(200, |view| assert_eq!(view.body, b"all of this"));
    }
}

#[test]
fn the_end_of_the_connection_within_a_response_is_an_error() {
    for sample in samples() {
        for cut in 0..sample.bytes.len() {
            let mut parser = ResponseParser::default();
            assert_eq!(
                parser.parse(&sample.bytes[..cut], sample.is_head, None).unwrap().response,
                None
            );
            let expected = if cut == 0 { Ok(None) } else { Err(ParseError::Truncated) };
            assert_eq!(
                parser.end(),
                expected,
                "{cut} of {}",
                String::from_utf8_lossy(&sample.bytes)
            );
            parser.reset();
            assert_eq!(parser.end(), Ok(None));
        }
    }
}

#[test]
fn malformed_responses_are_errors() {
    let cases: &[(&[u8], ParseError)] = &[
        (b"SSH-2.0-x\r\n", ParseError::Head(httparse::Error::Version)),
        (b"HTTP/2.0 200 OK\r\n\r\n", ParseError::Head(httparse::Error::Version)),
        (b"HTTP/1.1 abc\r\n\r\n", ParseError::Head(httparse::Error::Status)),
        (b"HTTP/1.1 099 x\r\n\r\n", ParseError::Status),
        (b"HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n", ParseError::Head(httparse::Error::HeaderName)),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", ParseError::Switched),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", ParseError::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", ParseError::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", ParseError::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", ParseError::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", ParseError::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", ParseError::Length),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            ParseError::Length,
        ),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", ParseError::TransferEncoding),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz", ParseError::Chunk),
    ];
    for (bytes, error) in cases {
        assert_eq!(ResponseParser::default().parse(bytes, false, None), Err(*error));
    }
}

#[test]
fn a_head_is_bounded_however_it_is_split() {
    let head_of = |bytes: usize| {
        let mut head = b"HTTP/1.1 204 x\r\nA: ".to_vec();
        head.resize(bytes - 4, b'a');
        head.extend_from_slice(b"\r\n\r\n");
        head
    };
    for piece_bytes in [1, 1_000, HEAD_BYTES_MAX, usize::MAX] {
        let parse = |head: &[u8]| {
            let mut parser = ResponseParser::default();
            let mut last = None;
            for piece in head.chunks(piece_bytes.min(head.len())) {
                last = parser.parse(piece, false, None)?.response;
            }
            Ok(last.is_some())
        };
        assert_eq!(parse(&head_of(HEAD_BYTES_MAX)), Ok(true), "{piece_bytes}");
        assert_eq!(
            parse(&head_of(HEAD_BYTES_MAX + 1)),
            Err(ParseError::HeadTooBig),
            "{piece_bytes}"
        );
    }
    let empty_lines = [b'\n'; HEAD_BYTES_MAX];
    assert_eq!(
        ResponseParser::default().parse(&empty_lines, false, None),
        Err(ParseError::HeadTooBig)
    );
    let many =
        [b"HTTP/1.1 200 x\r\n".to_vec(), b"A: b\r\n".repeat(HEADERS_MAX + 1), b"\r\n".to_vec()]
            .concat();
    assert_eq!(
        ResponseParser::default().parse(&many, false, None),
        Err(ParseError::Head(httparse::Error::TooManyHeaders))
    );
}

#[test]
fn collected_bodies_are_bounded_and_skipped_ones_are_not() {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", u64::MAX);
    let mut collector = Collector::default();
    let mut collecting = ResponseParser::default();
    let mut skipping = ResponseParser::default();
    assert!(collecting.parse(head.as_bytes(), false, Some(&mut collector)).is_ok());
    assert!(skipping.parse(head.as_bytes(), false, None).is_ok());
    let piece = vec![b'x'; 1 << 20];
    let mut result = Ok(Parsed { consumed_bytes: 0, response: None });
    for _ in 0..=BODY_COLLECTED_BYTES_MAX / piece.len() {
        result = collecting.parse(&piece, false, Some(&mut collector));
        assert_eq!(
            skipping.parse(&piece, false, None),
            Ok(Parsed { consumed_bytes: piece.len(), response: None })
        );
    }
    assert_eq!(result, Err(ParseError::BodyTooBig));
}

#[test]
fn a_whole_response_needs_no_memory() {
    let mut parser = ResponseParser::default();
    for sample in samples() {
        parser.parse(&sample.bytes, sample.is_head, None).unwrap();
    }
    assert_eq!(parser.held.capacity(), 0);
}
