use super::*;

#[test]
fn a_copy_has_all_files_and_directories() {
    let dir = std::env::temp_dir().join(format!("kvant-lab-tree-{}", std::process::id()));
    let (from, to) = (dir.join("from"), dir.join("to"));
    fs::create_dir_all(from.join("deep/er")).unwrap();
    fs::create_dir_all(from.join("empty")).unwrap();
    fs::write(from.join("a"), b"one").unwrap();
    fs::write(from.join("deep/er/b"), b"two").unwrap();
    let listener = std::os::unix::net::UnixListener::bind(from.join("socket")).unwrap();
    copy(&from, &to).unwrap();
    assert_eq!(fs::read(to.join("a")).unwrap(), b"one");
    assert_eq!(fs::read(to.join("deep/er/b")).unwrap(), b"two");
    assert!(to.join("empty").is_dir());
    assert!(!to.join("socket").exists());
    // Changes of the copy do not reach the original.
    fs::write(to.join("a"), b"other").unwrap();
    assert_eq!(fs::read(from.join("a")).unwrap(), b"one");
    drop(listener);
    fs::remove_dir_all(&dir).unwrap();
}
