//! What survives a power loss.

use super::*;
use std::collections::BTreeSet;

const SEED_COUNT: u64 = 2_000;

/// The contents of `path` in the images of many seeds.
fn outcomes(fs: &FaultyFs, path: &str) -> BTreeSet<Option<Vec<u8>>> {
    let image = |seed| fs.crash_image(seed, CrashStyle::Random);
    (0..SEED_COUNT).map(|seed| contents(&image(seed), path)).collect()
}

/// The names in the images of many seeds.
fn name_outcomes(fs: &FaultyFs) -> BTreeSet<Vec<String>> {
    let names = |seed| {
        let files = fs.crash_image(seed, CrashStyle::Random).files();
        files.into_iter().map(|(path, _)| path.to_str().unwrap().to_owned()).collect()
    };
    (0..SEED_COUNT).map(names).collect()
}

fn names(lists: &[&[&str]]) -> BTreeSet<Vec<String>> {
    lists.iter().map(|list| list.iter().map(|name| (*name).to_owned()).collect()).collect()
}

#[test]
fn only_synced_data_is_certain() {
    let fs = FaultyFs::new(SEED);
    put(&fs, "/lost", b"synced").sync_data().unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    fs.rename(Path::new("/lost"), Path::new("/kept")).unwrap();
    put(&fs, "/empty", b"not synced");
    fs.sync_dir(Path::new("/")).unwrap();
    put(&fs, "/lost", b"synced without its name").sync_data().unwrap();
    let file = fs.open_writable(Path::new("/kept")).unwrap();
    file.write_all_at(b" and not", 6).unwrap();

    let dropped = fs.crash_image(SEED, CrashStyle::DropUnsynced);
    assert_eq!(contents(&dropped, "/kept").unwrap(), b"synced");
    assert_eq!(contents(&dropped, "/empty").unwrap(), b"");
    assert_eq!(contents(&dropped, "/lost"), None);
    let kept = fs.crash_image(SEED, CrashStyle::KeepAll);
    assert_eq!(contents(&kept, "/kept").unwrap(), b"synced and not");
    assert_eq!(contents(&kept, "/empty").unwrap(), b"not synced");
    assert_eq!(contents(&kept, "/lost").unwrap(), b"synced without its name");
}

#[test]
fn a_directory_is_lost_with_its_contents_unless_its_parent_is_synced() {
    let fs = FaultyFs::new(SEED);
    fs.create_dir_all(Path::new("/a/b")).unwrap();
    put(&fs, "/a/b/file", b"x").sync_data().unwrap();
    fs.sync_dir(Path::new("/a/b")).unwrap();
    fs.sync_dir(Path::new("/a")).unwrap();
    assert_eq!(name_outcomes(&fs), names(&[&[], &["/a/b/file"]]));
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(name_outcomes(&fs), names(&[&["/a/b/file"]]));
}

#[test]
fn unsynced_removals_may_be_undone() {
    let fs = FaultyFs::new(SEED);
    put(&fs, "/a", b"a");
    put(&fs, "/b", b"b");
    fs.sync_all();
    fs.remove_file(Path::new("/a")).unwrap();
    fs.remove_file(Path::new("/b")).unwrap();
    assert_eq!(name_outcomes(&fs), names(&[&["/a", "/b"], &["/a"], &["/b"], &[]]));
    assert_eq!(outcomes(&fs, "/a"), [None, Some(b"a".to_vec())].into());
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(name_outcomes(&fs), names(&[&[]]));
}

#[test]
fn a_rename_is_atomic() {
    let fs = FaultyFs::new(SEED);
    put(&fs, "/CURRENT", b"old");
    fs.sync_all();
    put(&fs, "/CURRENT.tmp", b"new").sync_data().unwrap();
    fs.rename(Path::new("/CURRENT.tmp"), Path::new("/CURRENT")).unwrap();
    assert_eq!(outcomes(&fs, "/CURRENT"), [Some(b"old".to_vec()), Some(b"new".to_vec())].into());
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(outcomes(&fs, "/CURRENT"), [Some(b"new".to_vec())].into());
    assert_eq!(name_outcomes(&fs), names(&[&["/CURRENT"]]));
}

#[test]
fn a_renamed_file_has_one_name_even_across_directories() {
    let fs = FaultyFs::new(SEED);
    fs.create_dir_all(Path::new("/from")).unwrap();
    put(&fs, "/from/a", b"x");
    fs.sync_all();
    fs.create_dir_all(Path::new("/new/to")).unwrap();
    fs.rename(Path::new("/from/a"), Path::new("/from/b")).unwrap();
    fs.rename(Path::new("/from/b"), Path::new("/new/to/c")).unwrap();
    let one_of_each: &[&[&str]] = &[&["/from/a"], &["/from/b"], &["/new/to/c"]];
    assert_eq!(name_outcomes(&fs), names(one_of_each));
    fs.sync_dir(Path::new("/from")).unwrap();
    assert_eq!(name_outcomes(&fs), names(&[&["/new/to/c"]]));
}

#[test]
fn a_renamed_directory_keeps_its_contents() {
    let fs = FaultyFs::new(SEED);
    fs.create_dir_all(Path::new("/new")).unwrap();
    put(&fs, "/new/a", b"x");
    fs.sync_all();
    fs.rename(Path::new("/new"), Path::new("/done")).unwrap();
    put(&fs, "/done/b", b"x");
    fs.sync_dir(Path::new("/done")).unwrap();
    assert_eq!(name_outcomes(&fs), names(&[&["/new/a", "/new/b"], &["/done/a", "/done/b"]]));
}

#[test]
fn a_directory_may_be_removed_in_part() {
    let fs = FaultyFs::new(SEED);
    fs.create_dir_all(Path::new("/dir")).unwrap();
    put(&fs, "/dir/a", b"");
    put(&fs, "/dir/b", b"");
    fs.sync_all();
    fs.remove_dir_all(Path::new("/dir")).unwrap();
    let expected: &[&[&str]] = &[&["/dir/a", "/dir/b"], &["/dir/a"], &["/dir/b"], &[]];
    assert_eq!(name_outcomes(&fs), names(expected));
    fs.sync_dir(Path::new("/")).unwrap();
    fs.create_dir_all(Path::new("/dir")).unwrap();
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(
        name_outcomes(&fs),
        names(&[&[]]),
        "the new directory does not inherit the old one's files"
    );
}

#[test]
fn unsynced_writes_are_dropped_kept_torn_and_reordered() {
    let fs = FaultyFs::new(SEED);
    let file = put(&fs, "/log", &[1; 100]);
    fs.sync_all();
    for write in 0..3u8 {
        file.write_all_at(&[2 + write; 1000], 100 + u64::from(write) * 1000).unwrap();
    }
    let live = contents(&fs, "/log").unwrap();
    let outcomes: Vec<Vec<u8>> =
        outcomes(&fs, "/log").into_iter().map(|found| found.unwrap()).collect();
    for found in &outcomes {
        assert!(found.len() <= live.len());
        assert_eq!(found[..100], live[..100], "synced data is certain");
        let explained = found.iter().zip(&live).all(|(found, live)| found == live || *found == 0);
        assert!(explained, "every byte is as written or zero");
    }
    let some = |what: &str, predicate: &dyn Fn(&Vec<u8>) -> bool| {
        assert!(outcomes.iter().any(predicate), "no seed shows: {what}");
    };
    let is_prefix = |found: &Vec<u8>| live.starts_with(found);
    some("all dropped", &|found| found.len() == 100);
    some("all kept", &|found| *found == live);
    some("a whole prefix of the writes", &|found| is_prefix(found) && found.len() == 1100);
    some("a cut at any byte", &|found| {
        is_prefix(found) && found.len() % 100 != 0 && found.len() % 512 != 0
    });
    some("a cut between sectors", &|found| is_prefix(found) && found.len() == 1024);
    some("a later write without the earlier ones", &|found| found.len() == 3100 && found[100] == 0);
    some("a missing sector in between", &|found| {
        found.len() == 3100 && found[512] == 0 && found[511] == 2
    });
    some("length without bytes", &|found| {
        found.len() == 1100 && found[100..].iter().all(|byte| *byte == 0)
    });
}

#[test]
fn overlapping_writes_may_be_reordered() {
    let fs = FaultyFs::new(SEED);
    let file = put(&fs, "/a", b"0");
    fs.sync_all();
    file.write_all_at(b"11", 0).unwrap();
    file.write_all_at(b"2", 0).unwrap();
    assert!(outcomes(&fs, "/a").contains(&Some(b"11".to_vec())));
    assert!(outcomes(&fs, "/a").contains(&Some(b"21".to_vec())));
}

#[test]
fn a_change_of_length_keeps_its_position_and_is_atomic() {
    let fs = FaultyFs::new(SEED);
    let file = put(&fs, "/a", b"aaaa");
    fs.sync_all();
    file.set_len(2).unwrap();
    file.write_all_at(b"bb", 2).unwrap();
    let expected: [&[u8]; 6] = [b"aaaa", b"aa", b"aabb", b"aab", b"aaba", b"aa\0\0"];
    assert_eq!(outcomes(&fs, "/a"), expected.map(|found| Some(found.to_vec())).into());
}

#[test]
fn data_of_a_failed_sync_stays_in_doubt() {
    let fs = FaultyFs::new(SEED);
    let file = put(&fs, "/a", b"");
    fs.sync_all();
    file.write_all_at(b"doubt", 0).unwrap();
    fs.fail_next(FaultOp::SyncData, "a", ErrorKind::Other, 1);
    assert_fails(file.sync_data(), ErrorKind::Other);
    file.write_all_at(b"certain", 3).unwrap();
    file.sync_data().unwrap();
    let dropped = fs.crash_image(SEED, CrashStyle::DropUnsynced);
    assert_eq!(contents(&dropped, "/a").unwrap(), b"\0\0\0certain");
    let found = outcomes(&fs, "/a");
    assert!(found.contains(&Some(b"doucertain".to_vec())));
    assert!(
        found.iter().flatten().all(|found| found.ends_with(b"certain")),
        "certain data is applied last"
    );

    fs.rename(Path::new("/a"), Path::new("/b")).unwrap();
    fs.fail_next(FaultOp::SyncDir, "/", ErrorKind::Other, 1);
    assert_fails(fs.sync_dir(Path::new("/")), ErrorKind::Other);
    fs.sync_dir(Path::new("/")).unwrap();
    assert_eq!(name_outcomes(&fs), names(&[&["/a"], &["/b"]]));
}

#[test]
fn a_planned_crash_comes_before_or_after_its_sync_and_fails_all_later_operations() {
    let fs = FaultyFs::new(SEED);
    let log = put(&fs, "/log", b"");
    fs.sync_all();
    assert_eq!(fs.sync_point_count(), 0);
    log.write_all_at(b"one", 0).unwrap();
    fs.crash_at_sync_point(2);
    log.sync_data().unwrap();
    assert!(!fs.is_crashed());
    assert!(fs.take_crash_image(CrashMoment::BeforeSync, SEED, CrashStyle::KeepAll).is_none());
    log.write_all_at(b"two", 3).unwrap();
    assert!(log.sync_data().is_err());
    assert!(fs.is_crashed());
    assert_eq!(fs.sync_point_count(), 2);

    let root = Path::new("/");
    assert!(
        log.sync_data().is_err() && log.write_all_at(b"x", 0).is_err() && log.len_bytes().is_err()
    );
    assert!(
        fs.sync_dir(root).is_err() && fs.read(Path::new("/log")).is_err() && fs.list(root).is_err()
    );
    assert!(fs.create(Path::new("/b")).is_err() && fs.exists(root).is_err());
    assert_eq!(fs.sync_point_count(), 2, "there are no sync points without power");

    let image = |moment| fs.take_crash_image(moment, SEED, CrashStyle::DropUnsynced).unwrap();
    assert_eq!(contents(&image(CrashMoment::BeforeSync), "/log").unwrap(), b"one");
    assert_eq!(contents(&image(CrashMoment::AfterSync), "/log").unwrap(), b"onetwo");
    let restarted = image(CrashMoment::BeforeSync);
    assert!(!restarted.is_crashed());
    restarted.open_writable(Path::new("/log")).unwrap().write_all_at(b"more", 3).unwrap();
    assert_eq!(contents(&image(CrashMoment::BeforeSync), "/log").unwrap(), b"one");
}

#[test]
fn a_planned_crash_at_the_sync_of_a_directory() {
    let fs = FaultyFs::new(SEED);
    put(&fs, "/a", b"x").sync_data().unwrap();
    fs.crash_at_sync_point(2);
    assert!(fs.sync_dir(Path::new("/")).is_err());
    let image = |moment| fs.take_crash_image(moment, SEED, CrashStyle::DropUnsynced).unwrap();
    assert_eq!(contents(&image(CrashMoment::BeforeSync), "/a"), None);
    assert_eq!(contents(&image(CrashMoment::AfterSync), "/a").unwrap(), b"x");
}

#[test]
fn locks_and_faults_do_not_survive_and_hard_links_stay_linked() {
    let fs = FaultyFs::new(SEED);
    put(&fs, "/a", b"12345");
    fs.hard_link(Path::new("/a"), Path::new("/b")).unwrap();
    fs.sync_all();
    let _held = fs.lock(Path::new("/LOCK")).unwrap();
    fs.fail_next(FaultOp::Open, "", ErrorKind::Other, 100);
    let image = fs.crash_image(SEED, CrashStyle::KeepAll);
    let _held_again = image.lock(Path::new("/LOCK")).unwrap();
    image.open_writable(Path::new("/a")).unwrap().write_all_at(b"x", 5).unwrap();
    assert_eq!(contents(&image, "/b").unwrap(), b"12345x");
    assert_eq!(contents(&fs, "/b").unwrap(), b"12345", "an image is a copy");
}
