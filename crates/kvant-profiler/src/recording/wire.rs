//! How single values stand in a section: each type is written and read in one place.
//!
//! Invariant: reading checks every count against its limit and against the bytes that are left, so
//! no input leads to a panic or to more memory than the format allows.

use kvant_base::varint::{put_u64, take_bytes, take_u32, take_u64};

/// The largest count of texts, threads, spans and modules.
pub(super) const SMALL_COUNT_MAX: usize = 1 << 20;
/// The largest count of samples, frames, stacks and functions.
pub(super) const LARGE_COUNT_MAX: usize = 4 << 20;

/// A value with an encoding.
pub(super) trait Wire: Sized {
    /// Appends the value.
    fn put(&self, out: &mut Vec<u8>);

    /// Reads a value from the front of `input` and advances it; `None` if the bytes break the
    /// grammar.
    fn read(input: &mut &[u8]) -> Option<Self>;
}

impl Wire for u64 {
    fn put(&self, out: &mut Vec<u8>) {
        put_u64(out, *self);
    }

    fn read(input: &mut &[u8]) -> Option<u64> {
        take_u64(input)
    }
}

impl Wire for u32 {
    fn put(&self, out: &mut Vec<u8>) {
        put_u64(out, u64::from(*self));
    }

    fn read(input: &mut &[u8]) -> Option<u32> {
        take_u32(input)
    }
}

/// Signed differences are zigzag numbers: small where the absolute value is.
impl Wire for i64 {
    fn put(&self, out: &mut Vec<u8>) {
        put_u64(out, (self << 1 ^ self >> 63) as u64);
    }

    fn read(input: &mut &[u8]) -> Option<i64> {
        take_u64(input).map(|number| (number >> 1) as i64 ^ -((number & 1) as i64))
    }
}

impl Wire for u8 {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(*self);
    }

    fn read(input: &mut &[u8]) -> Option<u8> {
        take_bytes(input, 1).map(|bytes| bytes[0])
    }
}

impl Wire for bool {
    fn put(&self, out: &mut Vec<u8>) {
        out.push(u8::from(*self));
    }

    fn read(input: &mut &[u8]) -> Option<bool> {
        u8::read(input).filter(|&byte| byte <= 1).map(|byte| byte == 1)
    }
}

impl Wire for String {
    fn put(&self, out: &mut Vec<u8>) {
        put_text(out, self);
    }

    fn read(input: &mut &[u8]) -> Option<String> {
        let length = usize::try_from(take_u64(input)?).ok()?;
        std::str::from_utf8(take_bytes(input, length)?).ok().map(str::to_owned)
    }
}

pub(super) fn put_text(out: &mut Vec<u8>, text: &str) {
    put_u64(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

impl<T: Wire> Wire for Option<T> {
    fn put(&self, out: &mut Vec<u8>) {
        self.is_some().put(out);
        self.iter().for_each(|value| value.put(out));
    }

    fn read(input: &mut &[u8]) -> Option<Option<T>> {
        match bool::read(input)? {
            false => Some(None),
            true => T::read(input).map(Some),
        }
    }
}

impl<const N: usize> Wire for [u64; N] {
    fn put(&self, out: &mut Vec<u8>) {
        self.iter().for_each(|number| number.put(out));
    }

    fn read(input: &mut &[u8]) -> Option<[u64; N]> {
        let mut numbers = [0; N];
        for number in &mut numbers {
            *number = u64::read(input)?;
        }
        Some(numbers)
    }
}

impl<A: Wire, B: Wire> Wire for (A, B) {
    fn put(&self, out: &mut Vec<u8>) {
        self.0.put(out);
        self.1.put(out);
    }

    fn read(input: &mut &[u8]) -> Option<(A, B)> {
        Some((A::read(input)?, B::read(input)?))
    }
}

impl<T: Wire> Wire for Vec<T> {
    fn put(&self, out: &mut Vec<u8>) {
        put_rows(out, self, |row, out| row.put(out));
    }

    fn read(input: &mut &[u8]) -> Option<Vec<T>> {
        take_rows(input, SMALL_COUNT_MAX, T::read)
    }
}

/// Appends a count and that many rows.
pub(super) fn put_rows<'a, T>(
    out: &mut Vec<u8>,
    rows: &'a [T],
    mut put: impl FnMut(&'a T, &mut Vec<u8>),
) {
    put_u64(out, rows.len() as u64);
    rows.iter().for_each(|row| put(row, out));
}

/// Reads a count, of at most `count_max`, and that many rows.
pub(super) fn take_rows<T>(
    input: &mut &[u8],
    count_max: usize,
    mut take: impl FnMut(&mut &[u8]) -> Option<T>,
) -> Option<Vec<T>> {
    let count = take_count(input, count_max)?;
    (0..count).map(|_| take(input)).collect()
}

/// Reads a count of rows, each of which takes at least one byte.
pub(super) fn take_count(input: &mut &[u8], count_max: usize) -> Option<usize> {
    let count = usize::try_from(take_u64(input)?).ok()?;
    (count <= count_max.min(input.len())).then_some(count)
}

/// Implements [`Wire`] for a struct: its fields one after the other; those after `..` are not
/// stored and get their defaults.
macro_rules! wire_struct {
    ($Type:ident { $($field:ident),+ $(; .. $($default:ident),+)? }) => {
        impl Wire for $Type {
            fn put(&self, out: &mut Vec<u8>) {
                $(self.$field.put(out);)+
            }

            fn read(input: &mut &[u8]) -> Option<$Type> {
                Some($Type {
                    $($field: Wire::read(input)?,)+
                    $($($default: Default::default(),)+)?
                })
            }
        }
    };
}
pub(super) use wire_struct;
