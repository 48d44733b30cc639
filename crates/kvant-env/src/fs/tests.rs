//! The contract of [`Fs`]: one list of cases that the tests of every backend run.

use super::{DirEntry, File, Fs, create_dir_durably, missing_dirs};
use std::io::ErrorKind;
use std::path::Path;

type Case = (&'static str, fn(&dyn Fs, &Path));

const CASES: &[Case] = &[
    ("a file returns the written bytes", reads_back),
    ("a read past the end fails", read_past_end),
    ("a direct read is correct, or files are not opened for it", direct_read),
    ("a nonblocking read is correct or refused", nonblocking_read),
    ("a write past the end leaves zeros in the gap", write_past_end),
    ("a write-back changes nothing that is read", write_back),
    ("set_len truncates and extends with zeros", set_len),
    ("allocate extends and never truncates", allocate),
    ("create truncates an existing file", create_truncates),
    ("open needs an existing file", open_missing),
    ("a file opened for reading cannot be written", read_only),
    ("a file opened for writing keeps its contents", open_writable),
    ("files need an existing directory", missing_directory),
    ("create_dir_all creates parents and may be repeated", create_dir_all),
    ("create_dir_durably creates parents and may be repeated", create_durably),
    ("list returns files only, in name order", list),
    ("rename replaces the target and removes the old name", rename),
    ("rename of a directory moves its contents", rename_dir),
    ("rename between two links of one file keeps both", rename_same_file),
    ("hard links share contents and are removed separately", hard_link),
    ("an open file survives removal and replacement", open_survives),
    ("remove_file refuses directories and missing files", remove_file),
    ("remove_dir refuses files and directories that are missing or not empty", remove_dir),
    ("remove_dir_all removes everything below", remove_dir_all),
    ("sync_dir needs an existing directory", sync_dir),
    ("the device has free space", available_bytes),
    ("a lock excludes others until dropped and names its owner", lock),
    ("a lock replaces the id of the last owner", lock_after_owner_died),
    ("a lock survives the removal of its file", lock_without_its_file),
    ("a canonical path has no `.` or `..`", canonical),
];

/// Runs every case in its own directory below `root`, which must exist.
pub(crate) fn check(fs: &dyn Fs, root: &Path) {
    for (number, (name, case)) in CASES.iter().enumerate() {
        let dir = root.join(format!("case-{number}"));
        fs.create_dir_all(&dir).unwrap();
        eprintln!("{name}");
        case(fs, &dir);
    }
}

fn put(fs: &dyn Fs, path: &Path, contents: &[u8]) {
    fs.create(path).unwrap().write_all_at(contents, 0).unwrap();
}

fn names(fs: &dyn Fs, dir: &Path) -> Vec<String> {
    fs.list(dir).unwrap().into_iter().map(|entry| entry.name).collect()
}

#[track_caller]
fn assert_fails<T>(result: std::io::Result<T>, kind: ErrorKind) {
    assert_eq!(result.err().map(|error| error.kind()), Some(kind));
}

fn reads_back(fs: &dyn Fs, dir: &Path) {
    let file = fs.create(&dir.join("a")).unwrap();
    file.write_all_at(b"hello ", 0).unwrap();
    file.write_all_at(b"world", 6).unwrap();
    file.write_all_at(b"J", 0).unwrap();
    file.write_all_at(b"", 100).unwrap();
    file.sync_data().unwrap();
    assert_eq!(file.len_bytes().unwrap(), 11);
    let mut middle = [0; 4];
    file.read_exact_at(&mut middle, 4).unwrap();
    assert_eq!(&middle, b"o wo");
    assert_eq!(fs.read(&dir.join("a")).unwrap(), b"Jello world");
}

fn read_past_end(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("a"), b"12345");
    let file = fs.open(&dir.join("a")).unwrap();
    assert_fails(file.read_exact_at(&mut [0; 2], 4), ErrorKind::UnexpectedEof);
    assert_fails(file.read_exact_at(&mut [0; 1], 500), ErrorKind::UnexpectedEof);
    file.read_exact_at(&mut [], 5).unwrap();
}

fn direct_read(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("a"), b"Jello world");
    match fs.open_direct(&dir.join("a")) {
        Ok(file) => {
            let mut middle = [0; 4];
            file.read_exact_at(&mut middle, 4).unwrap();
            assert_eq!(&middle, b"o wo");
            assert_fails(file.read_exact_at(&mut [0; 2], 10), ErrorKind::UnexpectedEof);
            assert_fails(file.read_exact_at(&mut [0; 1], 11), ErrorKind::UnexpectedEof);
            assert_eq!(file.len_bytes().unwrap(), 11);
        }
        Err(error) => {
            assert!(matches!(error.kind(), ErrorKind::InvalidInput | ErrorKind::Unsupported));
        }
    }
    assert_fails(fs.open_direct(&dir.join("missing")), ErrorKind::NotFound);
}

fn nonblocking_read(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("a"), b"Jello world");
    let file = fs.open(&dir.join("a")).unwrap();
    let mut middle = [0; 4];
    if file.try_read_exact_at(&mut middle, 4).unwrap() {
        assert_eq!(&middle, b"o wo");
    }
    let past_end = file.try_read_exact_at(&mut [0; 4], 9);
    assert!(
        past_end
            .as_ref()
            .map_or_else(|error| error.kind() == ErrorKind::UnexpectedEof, |filled| !filled),
        "{past_end:?}"
    );
}

fn write_past_end(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("a"), b"ab");
    fs.open_writable(&dir.join("a")).unwrap().write_all_at(b"z", 4).unwrap();
    assert_eq!(fs.read(&dir.join("a")).unwrap(), b"ab\0\0z");
}

fn write_back(fs: &dyn Fs, dir: &Path) {
    let file = fs.create(&dir.join("file")).unwrap();
    file.write_all_at(b"abc", 0).unwrap();
    file.begin_write_back(0, 3).unwrap();
    // Beyond the end there is nothing to write.
    file.begin_write_back(3, 1 << 20).unwrap();
    assert_eq!(fs.read(&dir.join("file")).unwrap(), b"abc");
}

fn set_len(fs: &dyn Fs, dir: &Path) {
    let file = fs.create(&dir.join("a")).unwrap();
    file.write_all_at(b"abcdef", 0).unwrap();
    file.set_len(2).unwrap();
    file.set_len(4).unwrap();
    assert_eq!(fs.read(&dir.join("a")).unwrap(), b"ab\0\0");
}

fn allocate(fs: &dyn Fs, dir: &Path) {
    let file = fs.create(&dir.join("a")).unwrap();
    file.write_all_at(b"abc", 0).unwrap();
    file.allocate(0).unwrap();
    file.allocate(2).unwrap();
    assert_eq!(file.len_bytes().unwrap(), 3);
    file.allocate(5).unwrap();
    assert_fails(file.allocate(u64::MAX), ErrorKind::FileTooLarge);
    assert_eq!(fs.read(&dir.join("a")).unwrap(), b"abc\0\0");
}

fn create_truncates(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("a"), b"old contents");
    put(fs, &dir.join("a"), b"new");
    assert_eq!(fs.read(&dir.join("a")).unwrap(), b"new");
}

fn open_missing(fs: &dyn Fs, dir: &Path) {
    assert_fails(fs.open(&dir.join("a")), ErrorKind::NotFound);
    assert_fails(fs.open_writable(&dir.join("a")), ErrorKind::NotFound);
    assert_fails(fs.read(&dir.join("a")), ErrorKind::NotFound);
    assert!(!fs.exists(&dir.join("a")).unwrap());
}

fn read_only(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("a"), b"kept");
    let file = fs.open(&dir.join("a")).unwrap();
    assert!(file.write_all_at(b"lost", 0).is_err());
    assert!(file.set_len(0).is_err());
    assert_eq!(fs.read(&dir.join("a")).unwrap(), b"kept");
}

fn open_writable(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("a"), b"abc");
    let file = fs.open_writable(&dir.join("a")).unwrap();
    file.write_all_at(b"d", 3).unwrap();
    assert_eq!(fs.read(&dir.join("a")).unwrap(), b"abcd");
}

fn missing_directory(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("file"), b"");
    put(fs, &dir.join("a"), b"");
    assert_fails(fs.create(&dir.join("none/a")), ErrorKind::NotFound);
    assert_fails(fs.rename(&dir.join("a"), &dir.join("none/a")), ErrorKind::NotFound);
    assert_fails(fs.hard_link(&dir.join("a"), &dir.join("none/a")), ErrorKind::NotFound);
    assert_fails(fs.list(&dir.join("none")), ErrorKind::NotFound);
    assert_fails(fs.create(&dir.join("file/a")), ErrorKind::NotADirectory);
    assert_fails(fs.list(&dir.join("file")), ErrorKind::NotADirectory);
    assert_fails(fs.create(dir), ErrorKind::IsADirectory);
}

fn create_durably(fs: &dyn Fs, dir: &Path) {
    let (top, path) = (dir.join("a"), dir.join("a/b"));
    assert_eq!(missing_dirs(fs, &path).unwrap(), [&*path, &*top]);
    for _ in 0..2 {
        create_dir_durably(fs, &path).unwrap();
        assert_eq!(missing_dirs(fs, &path).unwrap(), Vec::<&Path>::new());
    }
    put(fs, &dir.join("file"), b"");
    assert!(create_dir_durably(fs, &dir.join("file/dir")).is_err());
}

fn create_dir_all(fs: &dyn Fs, dir: &Path) {
    fs.create_dir_all(&dir.join("a/b/c")).unwrap();
    fs.create_dir_all(&dir.join("a/b/c")).unwrap();
    assert!(fs.exists(&dir.join("a/b")).unwrap());
    put(fs, &dir.join("a/b/c/file"), b"x");
    assert_eq!(fs.read(&dir.join("a/b/../b/./c/file")).unwrap(), b"x");
    assert!(fs.create_dir_all(&dir.join("a/b/c/file")).is_err());
}

fn list(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("b"), b"12");
    put(fs, &dir.join("a"), b"1");
    put(fs, &dir.join("a.log"), b"123");
    fs.create_dir_all(&dir.join("aa")).unwrap();
    put(fs, &dir.join("aa/below"), b"");
    let expected = [("a", 1), ("a.log", 3), ("b", 2)];
    let expected = expected.map(|(name, len_bytes)| DirEntry { name: name.to_owned(), len_bytes });
    assert_eq!(fs.list(dir).unwrap(), expected);
}

fn rename(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("a"), b"new");
    put(fs, &dir.join("b"), b"old");
    fs.rename(&dir.join("a"), &dir.join("b")).unwrap();
    assert_eq!(names(fs, dir), ["b"]);
    assert_eq!(fs.read(&dir.join("b")).unwrap(), b"new");
    assert_fails(fs.rename(&dir.join("a"), &dir.join("b")), ErrorKind::NotFound);
    fs.create_dir_all(&dir.join("sub")).unwrap();
    assert_fails(fs.rename(&dir.join("b"), &dir.join("sub")), ErrorKind::IsADirectory);
    fs.rename(&dir.join("b"), &dir.join("sub/c")).unwrap();
    assert_eq!(fs.read(&dir.join("sub/c")).unwrap(), b"new");
}

fn rename_dir(fs: &dyn Fs, dir: &Path) {
    fs.create_dir_all(&dir.join("a/sub")).unwrap();
    put(fs, &dir.join("a/sub/file"), b"x");
    fs.create_dir_all(&dir.join("full")).unwrap();
    put(fs, &dir.join("full/file"), b"");
    assert_fails(fs.rename(&dir.join("a"), &dir.join("full")), ErrorKind::DirectoryNotEmpty);
    assert_fails(fs.rename(&dir.join("a"), &dir.join("a/sub/a")), ErrorKind::InvalidInput);
    fs.rename(&dir.join("a"), &dir.join("b")).unwrap();
    assert!(!fs.exists(&dir.join("a")).unwrap());
    assert_eq!(fs.read(&dir.join("b/sub/file")).unwrap(), b"x");
}

fn rename_same_file(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("a"), b"x");
    fs.hard_link(&dir.join("a"), &dir.join("b")).unwrap();
    fs.rename(&dir.join("a"), &dir.join("b")).unwrap();
    assert_eq!(names(fs, dir), ["a", "b"]);
}

fn hard_link(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("a"), b"one");
    fs.hard_link(&dir.join("a"), &dir.join("b")).unwrap();
    fs.open_writable(&dir.join("b")).unwrap().write_all_at(b"ONE", 0).unwrap();
    assert_eq!(fs.read(&dir.join("a")).unwrap(), b"ONE");
    fs.remove_file(&dir.join("a")).unwrap();
    assert_eq!(fs.read(&dir.join("b")).unwrap(), b"ONE");
    assert_fails(fs.hard_link(&dir.join("a"), &dir.join("c")), ErrorKind::NotFound);
    put(fs, &dir.join("c"), b"");
    assert_fails(fs.hard_link(&dir.join("b"), &dir.join("c")), ErrorKind::AlreadyExists);
}

fn open_survives(fs: &dyn Fs, dir: &Path) {
    let file = fs.create(&dir.join("a")).unwrap();
    file.write_all_at(b"first", 0).unwrap();
    fs.remove_file(&dir.join("a")).unwrap();
    put(fs, &dir.join("a"), b"second");
    file.write_all_at(b"F", 0).unwrap();
    let mut contents = [0; 5];
    file.read_exact_at(&mut contents, 0).unwrap();
    assert_eq!(&contents, b"First");
    assert_eq!(fs.read(&dir.join("a")).unwrap(), b"second");
}

fn remove_file(fs: &dyn Fs, dir: &Path) {
    assert_fails(fs.remove_file(&dir.join("a")), ErrorKind::NotFound);
    fs.create_dir_all(&dir.join("sub")).unwrap();
    assert!(fs.remove_file(&dir.join("sub")).is_err());
    assert!(fs.exists(&dir.join("sub")).unwrap());
}

fn remove_dir(fs: &dyn Fs, dir: &Path) {
    assert_fails(fs.remove_dir(&dir.join("a")), ErrorKind::NotFound);
    fs.create_dir_all(&dir.join("a/b")).unwrap();
    assert_fails(fs.remove_dir(&dir.join("a")), ErrorKind::DirectoryNotEmpty);
    fs.remove_dir(&dir.join("a/b")).unwrap();
    put(fs, &dir.join("a/file"), b"");
    assert_fails(fs.remove_dir(&dir.join("a/file")), ErrorKind::NotADirectory);
    assert_fails(fs.remove_dir(&dir.join("a")), ErrorKind::DirectoryNotEmpty);
    fs.remove_file(&dir.join("a/file")).unwrap();
    fs.remove_dir(&dir.join("a")).unwrap();
    assert!(!fs.exists(&dir.join("a")).unwrap());
}

fn remove_dir_all(fs: &dyn Fs, dir: &Path) {
    fs.create_dir_all(&dir.join("a/b")).unwrap();
    put(fs, &dir.join("a/file"), b"x");
    put(fs, &dir.join("a/b/file"), b"x");
    put(fs, &dir.join("ab"), b"x");
    fs.remove_dir_all(&dir.join("a")).unwrap();
    assert!(!fs.exists(&dir.join("a")).unwrap());
    assert_eq!(names(fs, dir), ["ab"]);
    assert_fails(fs.remove_dir_all(&dir.join("a")), ErrorKind::NotFound);
    fs.create_dir_all(&dir.join("a")).unwrap();
    assert!(names(fs, &dir.join("a")).is_empty());
}

fn sync_dir(fs: &dyn Fs, dir: &Path) {
    fs.sync_dir(dir).unwrap();
    assert_fails(fs.sync_dir(&dir.join("none")), ErrorKind::NotFound);
}

fn available_bytes(fs: &dyn Fs, dir: &Path) {
    assert!(fs.available_bytes(dir).unwrap() > 0);
    assert_fails(fs.available_bytes(&dir.join("none")), ErrorKind::NotFound);
}

fn lock(fs: &dyn Fs, dir: &Path) {
    let path = dir.join("LOCK");
    let held = fs.lock(&path).unwrap();
    let process_id = std::process::id().to_string();
    assert_eq!(String::from_utf8(fs.read(&path).unwrap()).unwrap().trim(), process_id);
    let refused = fs.lock(&path).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    assert!(refused.to_string().contains(&process_id), "{refused}");
    assert_fails(fs.lock(&dir.join("LOCK2")), ErrorKind::WouldBlock);
    fs.create_dir_all(&dir.join("other")).unwrap();
    let _other = fs.lock(&dir.join("other/LOCK")).unwrap();
    fs.sync_dir(dir).unwrap();
    drop(held);
    drop(fs.lock(&path).unwrap());
    drop(fs.lock(&path).unwrap());
    assert_fails(fs.lock(&dir.join("none/LOCK")), ErrorKind::NotFound);
}

fn lock_after_owner_died(fs: &dyn Fs, dir: &Path) {
    put(fs, &dir.join("LOCK"), b"1234567890123456789\nrubbish");
    let _held = fs.lock(&dir.join("LOCK")).unwrap();
    let contents = fs.read(&dir.join("LOCK")).unwrap();
    assert_eq!(contents, format!("{}\n", std::process::id()).into_bytes());
}

fn lock_without_its_file(fs: &dyn Fs, dir: &Path) {
    let path = dir.join("LOCK");
    let held = fs.lock(&path).unwrap();
    fs.remove_file(&path).unwrap();
    let refused = fs.lock(&path).err().expect("the directory has an owner");
    assert_eq!(refused.kind(), ErrorKind::WouldBlock);
    let process_id = std::process::id().to_string();
    assert!(refused.to_string().contains(&process_id), "{refused}");
    assert!(!fs.exists(&path).unwrap(), "a refused lock leaves no file");
    drop(held);
    drop(fs.lock(&path).unwrap());
}

fn canonical(fs: &dyn Fs, dir: &Path) {
    fs.create_dir_all(&dir.join("a/b")).unwrap();
    let expected = fs.canonical(dir).unwrap().join("a/b");
    assert!(expected.is_absolute());
    assert_eq!(fs.canonical(&dir.join("a/../a/./b")).unwrap(), expected);
    assert_fails(fs.canonical(&dir.join("none")), ErrorKind::NotFound);
}

/// One writer and several readers: a block below the file's length is complete. Readers make a
/// fixed number of reads, so that they end even if the writer fails.
pub(crate) fn check_threads(fs: &dyn Fs, root: &Path) {
    const BLOCK_BYTES: usize = 512;
    const BLOCK_COUNT: u64 = 50;
    const READ_COUNT: u64 = 2_000;
    let file = fs.create(&root.join("shared")).unwrap();
    let file: &dyn File = &*file;
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                let mut block = [0; BLOCK_BYTES];
                for _ in 0..READ_COUNT {
                    let whole_blocks = file.len_bytes().unwrap() / BLOCK_BYTES as u64;
                    if let Some(last) = whole_blocks.checked_sub(1) {
                        file.read_exact_at(&mut block, last * BLOCK_BYTES as u64).unwrap();
                        assert_eq!(block, [last as u8; BLOCK_BYTES]);
                    }
                }
            });
        }
        scope.spawn(|| {
            for number in 0..BLOCK_COUNT {
                file.write_all_at(&[number as u8; BLOCK_BYTES], number * BLOCK_BYTES as u64)
                    .unwrap();
                file.sync_data().unwrap();
            }
        });
    });
}
