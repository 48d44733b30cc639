//! A disk on which everything is durable at once.

use super::*;

#[test]
fn keeps_the_contract_of_file_systems() {
    conformance::check(&FaultyFs::in_memory(), Path::new("relative/../"));
    conformance::check_threads(&FaultyFs::in_memory(), Path::new("/"));
}

#[test]
fn clones_share_files() {
    let fs = FaultyFs::in_memory();
    fs.create(Path::new("/a")).unwrap().write_all_at(b"x", 0).unwrap();
    assert_eq!(fs.clone().read(Path::new("a")).unwrap(), b"x");
}

#[test]
fn the_root_cannot_be_replaced_or_removed() {
    let fs = FaultyFs::in_memory();
    assert_eq!(fs.create(Path::new("/")).err().unwrap().kind(), io::ErrorKind::IsADirectory);
    assert!(fs.remove_dir_all(Path::new("/")).is_err());
    assert!(fs.rename(Path::new("/"), Path::new("/a")).is_err());
    assert!(fs.exists(Path::new("/")).unwrap());
}

#[test]
fn offsets_beyond_memory_are_refused() {
    let fs = FaultyFs::in_memory();
    let file = fs.create(Path::new("/a")).unwrap();
    assert_eq!(file.write_all_at(b"x", u64::MAX).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(file.set_len(u64::MAX).unwrap_err().kind(), io::ErrorKind::FileTooLarge);
    assert_eq!(
        file.read_exact_at(&mut [0; 2], u64::MAX).unwrap_err().kind(),
        io::ErrorKind::UnexpectedEof
    );
    assert_eq!(file.len_bytes().unwrap(), 0);
}
