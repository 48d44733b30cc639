//! What a copy reads and writes, whatever the engine.

use kvant_base::Result;

/// A record of any engine.
#[derive(Clone, Copy)]
pub(super) struct Record<'a> {
    pub(super) key: &'a [u8],
    pub(super) value: &'a [u8],
    /// In wall milliseconds since 1970; `None`: never, or the place does not tell.
    pub(super) expires_at_ms: Option<u64>,
}

/// Records in key order.
pub(super) trait Records {
    fn next(&mut self) -> Result<Option<Record<'_>>>;
}

/// A place that can be read, from any key and repeatedly.
pub(super) trait Source {
    /// Records with `start <= key`, and `key < end` where an end is given.
    fn read(&self, start: &[u8], end: Option<&[u8]>) -> Result<Box<dyn Records + '_>>;
}

/// A place that a copy is written to, in key order.
pub(super) trait Target {
    fn put(&mut self, record: Record<'_>) -> Result<()>;
    /// All records are durable when this returns.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// The least key. Only programs other than Kvant can have put it, and only into LevelDB.
pub(super) const FIRST_KEY: &[u8] = b"";

/// The least key of places whose keys have a byte at least.
pub(super) const FIRST_KEY_OF_A_BYTE: &[u8] = b"\0";

/// The least key after `key`.
pub(super) fn key_after(key: &[u8]) -> Vec<u8> {
    [key, b"\0"].concat()
}

/// The last key of a place, found byte by byte with a few dozen short reads: engines read in
/// ascending order only.
pub(super) fn last_key(source: &dyn Source) -> Result<Option<Vec<u8>>> {
    let first_from = |start: &[u8]| {
        source.read(start, None).and_then(|mut it| Ok(it.next()?.map(|record| record.key.to_vec())))
    };
    let Some(mut known) = first_from(FIRST_KEY)? else { return Ok(None) };
    // The last key has the first `index` bytes of the greatest one that is known.
    let mut index = 0;
    while let Some(next) = first_from(&key_after(&known))? {
        known = next;
        let mut too_great = 256;
        while too_great - u16::from(known[index]) > 1 {
            let middle = (u16::from(known[index]) + too_great) / 2;
            let byte = u8::try_from(middle).expect("it is below 256");
            match first_from(&[&known[..index], &[byte]].concat())? {
                Some(key) => known = key,
                None => too_great = middle,
            }
        }
        index += 1;
    }
    Ok(Some(known))
}

#[cfg(test)]
pub(super) mod tests;
