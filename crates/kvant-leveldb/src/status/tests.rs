//! Kinds of LevelDB's error texts.

use super::error;
use kvant_base::ErrorKind;
use std::path::Path;

#[test]
fn every_status_of_leveldb_has_a_kind() {
    for (text, kind) in [
        ("Corruption: block checksum mismatch", ErrorKind::Corruption),
        ("Corruption: 2 missing files; e.g.: /d/000005.ldb", ErrorKind::Corruption),
        ("IO error: /d/000005.ldb: Invalid argument", ErrorKind::Corruption),
        ("Invalid argument: /d: exists (error_if_exists is true)", ErrorKind::Invalid),
        ("IO error: lock /d/LOCK: Resource temporarily unavailable", ErrorKind::Locked),
        ("IO error: lock /d/LOCK: already held by process", ErrorKind::Locked),
        ("IO error: /d/LOCK: Permission denied", ErrorKind::Io),
        ("IO error: /d/000003.log: No space left on device", ErrorKind::NoSpace),
        ("IO error: /d/000003.log: Disk quota exceeded", ErrorKind::NoSpace),
        ("IO error: /d/000003.log: Input/output error", ErrorKind::Io),
        ("NotFound: /d/000007.ldb: No such file or directory", ErrorKind::Io),
        ("Not implemented: ", ErrorKind::Io),
        ("", ErrorKind::Io),
    ] {
        let error = error(Path::new("/d"), text);
        assert_eq!(error.kind(), kind, "{text}");
        assert!(error.to_string().contains(text), "{error}");
    }
}
