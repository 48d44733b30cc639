use super::*;

/// The data of a chunked body, the number of bytes consumed, and whether the body is complete.
fn decode(input: &[u8]) -> Result<(Vec<u8>, usize, bool), ParseError> {
    let mut data = Vec::new();
    let (taken, is_complete) = Chunked::default().take(input, |piece| {
        data.extend_from_slice(piece);
        Ok(())
    })?;
    Ok((data, taken, is_complete))
}

#[test]
fn chunks_with_extensions_spaces_and_trailers_are_joined() {
    let body =
        b"5\r\nhello\r\n00a;name=\"a b\";x\r\n0123456789\r\n1 \t;y\r\n!\r\n0\r\nDate: today\r\nX: y\r\n\r\n";
    let mut input = body.to_vec();
    input.extend_from_slice(b"HTTP/1.1 200 OK");
    assert_eq!(decode(&input), Ok((b"hello0123456789!".to_vec(), body.len(), true)));
    assert_eq!(decode(b"0\r\n\r\n"), Ok((Vec::new(), 5, true)));
    for cut in 0..body.len() {
        assert!(!decode(&body[..cut]).unwrap().2, "complete after {cut} bytes");
    }
}

#[test]
fn broken_framing_is_an_error() {
    let broken: &[&[u8]] = &[
        b"\r\n",
        b"g\r\n",
        b"5\nhello\r\n",
        b"5\r\nhello0\r\n\r\n",
        b"5\r\nhello\n",
        b"5\rhello",
        b"-5\r\n",
        b"0x5\r\n",
        b"5 5\r\n",
        b"5;x\n",
        b";x\r\n",
        b"11111111111111111\r\n",
        b"0\r\nX: y\n\r\n",
        b"0\r\n\rX",
    ];
    for input in broken {
        let pieces = input.iter().map(std::slice::from_ref);
        let mut chunked = Chunked::default();
        let mut results = pieces.map(|piece| chunked.take(piece, |_| Ok(())));
        assert!(results.any(|result| result == Err(ParseError::Chunk)), "byte by byte: {input:?}");
        assert_eq!(decode(input), Err(ParseError::Chunk), "{:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn a_chunk_may_have_any_length_of_64_bits() {
    assert_eq!(decode(b"ffffffffffffffff\r\nx"), Ok((b"x".to_vec(), 19, false)));
}

#[test]
fn extensions_and_trailers_are_bounded() {
    let mut trailers = b"0\r\n".to_vec();
    trailers.extend(std::iter::repeat_n(b"Name: value\r\n".as_slice(), 10_000).flatten());
    assert_eq!(decode(&trailers), Err(ParseError::Chunk));
    let extensions = b"1;name=value\r\nx\r\n".repeat(10_000);
    assert_eq!(decode(&extensions), Err(ParseError::Chunk));
}
