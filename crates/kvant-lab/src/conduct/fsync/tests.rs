use super::{is_needed, measure};
use crate::plan::Plan;
use kvant_env::Env;
use std::path::Path;

fn is_needed_by(text: &str) -> bool {
    is_needed(&Plan::parse(text, Path::new("t.toml")).unwrap())
}

#[test]
fn the_disk_is_measured_if_a_subject_syncs_each_write() {
    assert!(is_needed_by("subject.a.serve = { sync = \"always\" }"));
    assert!(is_needed_by("[sweep]\nsync = [\"os\", \"always\"]"));
    assert!(!is_needed_by("subject.a.serve = { sync = \"os\" }"));
}

#[test]
fn each_append_of_a_measurement_is_synced_and_the_file_is_removed() {
    let dir = std::env::temp_dir().join(format!("kvant-lab-fsync-{}", std::process::id()));
    std::fs::create_dir_all(&dir).unwrap();
    let facts = measure(&Env::posix(), &dir, 2, 50).unwrap();
    assert_eq!(facts.repeat, 2);
    assert!((1..=50).contains(&facts.count), "{facts:?}");
    let percentiles = [facts.p50_ns, facts.p99_ns, facts.p999_ns, facts.max_ns];
    assert!(percentiles.is_sorted() && facts.p50_ns > 0, "{facts:?}");
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    std::fs::remove_dir_all(&dir).unwrap();
}
