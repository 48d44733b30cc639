//! What is written to a mapping is in the file, and a page that the system cannot provide is an
//! error.

use crate::fs::Fs;
use crate::posix::PosixFs;
use std::path::PathBuf;

struct TempFile(PathBuf);

impl TempFile {
    fn new(name: &str) -> TempFile {
        TempFile(std::env::temp_dir().join(format!("kvant-mapped-{name}-{}", std::process::id())))
    }
}

impl Drop for TempFile {
    fn drop(&mut self) {
        let _gone = std::fs::remove_file(&self.0);
    }
}

#[test]
fn what_is_written_is_in_the_file_and_the_rest_is_zero() {
    const BYTES: u64 = 5 << 20;
    let path = TempFile::new("written");
    let file = PosixFs::new().create(&path.0).unwrap();
    let mut mapped = file.map(BYTES).unwrap();
    assert_eq!((mapped.len_bytes(), file.len_bytes().unwrap()), (BYTES, BYTES));
    let mut wanted = Vec::new();
    while wanted.len() < 4 << 20 {
        let record = vec![wanted.len() as u8 | 1; 1 + wanted.len() % 777];
        if wanted.len() % 3 == 0 {
            file.write_all_at(&record, wanted.len() as u64).unwrap();
        } else {
            mapped.write(&record, wanted.len() as u64).unwrap();
        }
        wanted.extend(record);
    }
    assert!(mapped.write(b"x", BYTES).is_err(), "behind the end");
    drop(mapped);
    wanted.resize(BYTES as usize, 0);
    assert!(std::fs::read(&path.0).unwrap() == wanted);
}

#[test]
fn a_page_that_is_lost_is_an_error_and_the_process_goes_on() {
    let path = TempFile::new("lost");
    let file = PosixFs::new().create(&path.0).unwrap();
    let mut mapped = file.map(1 << 20).unwrap();
    mapped.write(b"there", 0).unwrap();
    // Pages behind the end of the file do not exist.
    file.set_len(4096).unwrap();
    mapped.write(b"there", 100).unwrap();
    let error = mapped.write(&[1; 10_000], 4000).unwrap_err();
    assert!(error.to_string().contains("could not provide a page"), "{error}");
    assert!(mapped.write(b"never again", 200).is_err());
    drop(mapped);
    assert_eq!(file.len_bytes().unwrap(), 4096);
    // Its slot is free for others, which have lost nothing.
    file.map(1 << 20).unwrap().write(b"there", 500_000).unwrap();
}
