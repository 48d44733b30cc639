use super::*;
use kvant_env::rng::{Rng, entropy_seed};

/// An answer with what has to be understood of it.
struct Sample {
    bytes: Vec<u8>,
    is_head: bool,
    answer: Answer,
    body: &'static [u8],
    headers: Vec<(&'static str, &'static [u8])>,
}

fn sample(bytes: &[u8], status: u16, keeps_alive: bool, body: &'static [u8]) -> Sample {
    let answer = Answer { status, keeps_alive, bytes: bytes.len() as u64 };
    Sample { bytes: bytes.to_vec(), is_head: false, answer, body, headers: Vec::new() }
}

fn to_head(sample: Sample) -> Sample {
    Sample { is_head: true, ..sample }
}

fn with_headers(sample: Sample, headers: &[(&'static str, &'static [u8])]) -> Sample {
    Sample { headers: headers.to_vec(), ..sample }
}

/// Answers that keep the connection open.
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

/// An answer with its headers and body.
type Seen = (Answer, Vec<(String, Vec<u8>)>, Vec<u8>);

/// Feeds the pieces; what was understood.
fn feed(pieces: &[&[u8]], is_head: &[bool]) -> Result<Vec<Seen>, Fault> {
    let mut parser = ResponseParser::new();
    let mut blind = ResponseParser::new();
    let mut collector = Collector::default();
    let mut seen = Vec::new();
    for piece in pieces {
        let mut at = 0;
        while at < piece.len() {
            // Nothing comes after the last answer in these tests.
            let is_head = is_head[seen.len()];
            let step = parser.parse(&piece[at..], is_head, Some(&mut collector))?;
            assert_eq!(blind.parse(&piece[at..], is_head, None), Ok(step));
            at += step.consumed_bytes;
            let Some(answer) = step.answer else {
                assert_eq!(at, piece.len(), "input is left although no answer is complete");
                continue;
            };
            assert!(parser.is_idle());
            seen.push(collector.with_view(answer.status, |view| {
                assert_eq!(view.status, answer.status);
                let headers =
                    view.headers.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec()));
                (answer, headers.collect(), view.body.to_vec())
            }));
        }
    }
    Ok(seen)
}

fn check(samples: &[&Sample], pieces: &[&[u8]]) {
    let is_head: Vec<bool> = samples.iter().map(|sample| sample.is_head).collect();
    let seen = feed(pieces, &is_head).unwrap();
    assert_eq!(seen.len(), samples.len(), "{pieces:?}");
    for (sample, (answer, headers, body)) in samples.iter().zip(seen) {
        let text = String::from_utf8_lossy(&sample.bytes);
        assert_eq!(answer, sample.answer, "{text}");
        assert_eq!(body, sample.body, "{text}");
        if !sample.headers.is_empty() {
            let expected =
                sample.headers.iter().map(|(name, value)| ((*name).to_owned(), value.to_vec()));
            assert_eq!(headers, expected.collect::<Vec<_>>(), "{text}");
        }
    }
}

#[test]
fn answers_are_understood_whole_in_two_pieces_and_byte_by_byte() {
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
fn pipelined_answers_are_told_apart_however_they_are_cut() {
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
fn random_answers_in_random_pieces_are_understood() {
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
fn random_damage_never_panics_and_always_ends() {
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
        // Damage may make one answer into several, never into more than it has bytes.
        drop(feed(&pieces, &vec![sample.is_head; bytes.len()]));
    }
}

#[test]
fn connections_that_close_say_so() {
    let closing: &[&[u8]] = &[
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
    ];
    for bytes in closing {
        let step = ResponseParser::new().parse(bytes, false, None).unwrap();
        assert!(!step.answer.unwrap().keeps_alive, "{}", String::from_utf8_lossy(bytes));
    }
}

#[test]
fn an_answer_without_length_ends_with_the_connection() {
    let bytes = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\nall of this";
    for cut in 0..bytes.len() {
        let mut parser = ResponseParser::new();
        let mut collector = Collector::default();
        for piece in [&bytes[..cut], &bytes[cut..]] {
            let step = parser.parse(piece, false, Some(&mut collector)).unwrap();
            assert_eq!(step, Step { consumed_bytes: piece.len(), answer: None });
        }
        let answer = Answer { status: 200, keeps_alive: false, bytes: bytes.len() as u64 };
        assert_eq!(parser.end(), Ok(Some(answer)));
        collector.with_view(200, |view| assert_eq!(view.body, b"all of this"));
    }
}

#[test]
fn the_end_of_the_connection_within_an_answer_is_a_fault() {
    for sample in samples() {
        for cut in 0..sample.bytes.len() {
            let mut parser = ResponseParser::new();
            assert_eq!(
                parser.parse(&sample.bytes[..cut], sample.is_head, None).unwrap().answer,
                None
            );
            let expected = if cut == 0 { Ok(None) } else { Err(Fault::Truncated) };
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
fn what_is_no_answer_is_a_fault() {
    let cases: &[(&[u8], Fault)] = &[
        (b"SSH-2.0-x\r\n", Fault::Head(httparse::Error::Version)),
        (b"HTTP/2.0 200 OK\r\n\r\n", Fault::Head(httparse::Error::Version)),
        (b"HTTP/1.1 abc\r\n\r\n", Fault::Head(httparse::Error::Status)),
        (b"HTTP/1.1 099 x\r\n\r\n", Fault::Status),
        (b"HTTP/1.1 200 OK\r\nBad Name: x\r\n\r\n", Fault::Head(httparse::Error::HeaderName)),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n", Fault::Switched),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", Fault::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1, 2\r\n\r\n", Fault::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", Fault::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\n", Fault::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n", Fault::Length),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n", Fault::Length),
        (
            b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
            Fault::Length,
        ),
        (b"HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Fault::TransferEncoding),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz", Fault::Chunk),
    ];
    for (bytes, fault) in cases {
        assert_eq!(ResponseParser::new().parse(bytes, false, None), Err(*fault));
        let message = fault.to_string();
        assert!(!message.is_empty() && !message.ends_with('.'), "{message}");
    }
}

#[test]
fn a_head_is_bounded_however_it_arrives() {
    let head_of = |bytes: usize| {
        let mut head = b"HTTP/1.1 204 x\r\nA: ".to_vec();
        head.resize(bytes - 4, b'a');
        head.extend_from_slice(b"\r\n\r\n");
        head
    };
    for piece_bytes in [1, 1_000, HEAD_BYTES_MAX, usize::MAX] {
        let parse = |head: &[u8]| {
            let mut parser = ResponseParser::new();
            let mut last = None;
            for piece in head.chunks(piece_bytes.min(head.len())) {
                last = parser.parse(piece, false, None)?.answer;
            }
            Ok(last.map(|answer| answer.bytes))
        };
        assert_eq!(
            parse(&head_of(HEAD_BYTES_MAX)),
            Ok(Some(HEAD_BYTES_MAX as u64)),
            "{piece_bytes}"
        );
        assert_eq!(parse(&head_of(HEAD_BYTES_MAX + 1)), Err(Fault::HeadTooBig), "{piece_bytes}");
    }
    let empty_lines = [b'\n'; HEAD_BYTES_MAX];
    assert_eq!(ResponseParser::new().parse(&empty_lines, false, None), Err(Fault::HeadTooBig));
    let many =
        [b"HTTP/1.1 200 x\r\n".to_vec(), b"A: b\r\n".repeat(HEADERS_MAX + 1), b"\r\n".to_vec()]
            .concat();
    assert_eq!(
        ResponseParser::new().parse(&many, false, None),
        Err(Fault::Head(httparse::Error::TooManyHeaders))
    );
}

#[test]
fn a_body_for_a_script_is_bounded_and_others_are_not() {
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", u64::MAX);
    let mut collector = Collector::default();
    let mut collecting = ResponseParser::new();
    let mut blind = ResponseParser::new();
    assert!(collecting.parse(head.as_bytes(), false, Some(&mut collector)).is_ok());
    assert!(blind.parse(head.as_bytes(), false, None).is_ok());
    let piece = vec![b'x'; 1 << 20];
    let mut met = Ok(Step { consumed_bytes: 0, answer: None });
    for _ in 0..=BODY_COLLECTED_BYTES_MAX / piece.len() {
        met = collecting.parse(&piece, false, Some(&mut collector));
        assert_eq!(
            blind.parse(&piece, false, None),
            Ok(Step { consumed_bytes: piece.len(), answer: None })
        );
    }
    assert_eq!(met, Err(Fault::BodyTooBig));
}

#[test]
fn a_whole_answer_needs_no_memory() {
    let mut parser = ResponseParser::new();
    for sample in samples() {
        parser.parse(&sample.bytes, sample.is_head, None).unwrap();
    }
    assert_eq!(parser.held.capacity(), 0);
}
