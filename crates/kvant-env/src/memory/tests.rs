use super::*;
use crate::conformance;

#[test]
fn behaves_like_every_file_system() {
    conformance::check(&MemoryFs::new(), Path::new("relative/../"));
    conformance::check_threads(&MemoryFs::new(), Path::new("/"));
}

#[test]
fn clones_share_files() {
    let fs = MemoryFs::new();
    fs.create(Path::new("/a")).unwrap().write_all_at(b"x", 0).unwrap();
    assert_eq!(fs.clone().read(Path::new("a")).unwrap(), b"x");
}

#[test]
fn the_root_is_a_directory_that_stays() {
    let fs = MemoryFs::new();
    assert_eq!(fs.create(Path::new("/")).err().unwrap().kind(), ErrorKind::IsADirectory);
    assert!(fs.remove_dir_all(Path::new("/")).is_err());
    assert!(fs.rename(Path::new("/"), Path::new("/a")).is_err());
    assert!(fs.exists(Path::new("/")).unwrap());
}

#[test]
fn absurd_offsets_are_refused() {
    let fs = MemoryFs::new();
    let file = fs.create(Path::new("/a")).unwrap();
    assert_eq!(file.write_all_at(b"x", u64::MAX).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(file.set_len(u64::MAX).unwrap_err().kind(), ErrorKind::FileTooLarge);
    assert_eq!(
        file.read_exact_at(&mut [0; 2], u64::MAX).unwrap_err().kind(),
        ErrorKind::UnexpectedEof
    );
    assert_eq!(file.len_bytes().unwrap(), 0);
}
