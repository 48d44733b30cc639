use super::{Page, Pages, Row, Unread};
use bytes::Bytes;
use kvant_base::ErrorKind;

fn row(key: u8) -> Row {
    let (key, value) = (Bytes::from(vec![key]), Some(Bytes::from_static(b"value")));
    Row { key, value, ..Row::default() }
}

/// Pages of at most two rows of the buckets 3, 5 and 7.
fn pages_of(rows: &[(i32, u8)]) -> Pages {
    let mut pages = Unread::new([3, 5, 7].into_iter(), 2, rows.len());
    for &(bucket, key) in rows {
        pages.add(bucket, row(key)).unwrap();
    }
    pages.read(1_000)
}

fn take_all(page: &mut Page) -> usize {
    page.rows.iter_mut().map(Row::freed_bytes).sum()
}

#[test]
fn rows_are_in_the_pages_of_their_buckets() {
    // Whichever bucket comes first.
    let read = pages_of(&[(7, 1), (7, 2), (3, 4)]);
    let keys = |page: &Page| -> Vec<u8> { page.rows.iter().map(|row| row.key[0]).collect() };
    let pages: Vec<_> = read.pages.iter().map(|page| (page.bucket, keys(page))).collect();
    assert_eq!(pages, [(3, vec![4]), (5, vec![]), (7, vec![1, 2])]);
    // Only a full page may have others behind it.
    assert!(read.pages.iter().map(|page| page.is_last).eq([true, true, false]));
    assert_eq!((read.row_bytes_max, read.asked_rows), (6, 6));
}

#[test]
fn a_row_of_a_bucket_that_was_not_asked_for_is_an_error() {
    let mut pages = Unread::new([3, 5].into_iter(), 2, 1);
    assert_eq!(pages.add(4, row(1)).unwrap_err().kind(), ErrorKind::Io);
}

#[test]
fn a_response_counts_until_the_last_row_of_its_last_page() {
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        let mut read = pages_of(&[(3, 1), (5, 2), (5, 3), (7, 4)]);
        let [first, second, third] = order.map(|at| take_all(&mut read.pages[at]));
        assert_eq!((first, second, third), (0, 0, read.bytes), "{order:?}");
        assert!(read.bytes > 1_000);
    }
}

#[test]
fn a_response_without_rows_does_not_count() {
    assert_eq!(pages_of(&[]).bytes, 0);
}
