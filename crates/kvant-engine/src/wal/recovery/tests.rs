use super::*;
use crate::wal::PreviousWal;
use crate::wal::tests::{DIR, create, path_of, test_seed};
use kvant_env::rng::Rng;
use kvant_env::testing::{CrashStyle, FaultyFs};

fn recover_seqs(fs: &dyn Fs, nums: &[u64]) -> Result<(Vec<u64>, Vec<RecoveredWal>)> {
    let nums: Vec<FileNum> = nums.iter().map(|&num| FileNum(num)).collect();
    let mut seqs = Vec::new();
    let ends =
        recover(fs, Path::new(DIR), &nums, &BTreeMap::new(), Some(SeqNum(1)), &mut |_, record| {
            seqs.extend((0..u64::from(record.op_count)).map(|index| record.first_seq.0 + index));
            Ok(())
        })?;
    Ok((seqs, ends))
}

fn new_fs(seed: u64) -> FaultyFs {
    let fs = FaultyFs::new(seed);
    fs.create_dir_all(Path::new(DIR)).unwrap();
    fs.sync_all();
    fs
}

/// Logs 1, 2, 3 with two records of one operation each; log `n` states that `synced[n - 1]` bytes
/// of it are synced.
fn three_logs(synced: [u64; 3]) -> FaultyFs {
    let fs = new_fs(1);
    let mut previous: Option<PreviousWal> = None;
    for num in 1..=3 {
        let mut writer = create(&fs, num, previous);
        writer.append(SeqNum(2 * num - 1), 1, &[b"first"], 0).unwrap();
        writer.append(SeqNum(2 * num), 1, &[b"second"], synced[num as usize - 1]).unwrap();
        previous = Some(writer.as_previous());
    }
    fs
}

fn cut(fs: &FaultyFs, num: u64, len_bytes: u64) {
    fs.open_writable(&path_of(num)).unwrap().set_len(len_bytes).unwrap();
}

#[test]
fn logs_are_read_as_one() {
    let (seqs, ends) = recover_seqs(&three_logs([0, 0, 0]), &[1, 2, 3]).unwrap();
    assert_eq!(seqs, [1, 2, 3, 4, 5, 6]);
    assert!(ends.iter().all(|log| log.end.reason == WalEndReason::Clean && log.record_count == 2));
    assert_eq!(recover_seqs(&new_fs(1), &[]).unwrap(), (vec![], vec![]));
}

#[test]
fn logs_after_a_short_log_are_discarded_unless_synced() {
    let first_end = 40 + 36 + 5;
    let fs = three_logs([0, 0, 0]);
    cut(&fs, 2, first_end);
    let (seqs, ends) = recover_seqs(&fs, &[1, 2, 3]).unwrap();
    assert_eq!(seqs, [1, 2, 3]);
    assert_eq!((ends[1].end.good_bytes, ends[2].end.good_bytes), (first_end, 0));
    assert!(ends[2].end.discarded_bytes > 0);

    for (num, synced) in [(1, [0, 0, first_end]), (2, [0, 0, first_end]), (1, [0, first_end, 0])] {
        let fs = three_logs(synced);
        cut(&fs, num, first_end);
        let error = recover_seqs(&fs, &[1, 2, 3]).unwrap_err();
        assert_eq!(
            (error.kind(), error.offset_bytes()),
            (ErrorKind::Corruption, Some(first_end)),
            "{error}"
        );
        assert_eq!(error.file(), Some(path_of(num).as_path()));
    }
}

#[test]
fn a_torn_file_header_ends_the_history() {
    let fs = three_logs([0, 0, 0]);
    fs.flip_byte(&path_of(2), 20, 1).unwrap();
    let (seqs, ends) = recover_seqs(&fs, &[1, 2, 3]).unwrap();
    assert_eq!(seqs, [1, 2]);
    assert_eq!((ends[1].end.good_bytes, ends[2].end.good_bytes), (0, 0));

    for synced in [[0, 81, 0], [0, 0, 81]] {
        let fs = three_logs(synced);
        fs.flip_byte(&path_of(2), 20, 1).unwrap();
        let error = recover_seqs(&fs, &[1, 2, 3]).unwrap_err();
        assert_eq!(
            (error.kind(), error.file()),
            (ErrorKind::Corruption, Some(path_of(2).as_path())),
            "{error}"
        );
    }
}

#[test]
fn a_missing_log_is_corruption() {
    let error = recover_seqs(&three_logs([0, 0, 0]), &[1, 3]).unwrap_err();
    assert_eq!((error.kind(), error.file()), (ErrorKind::Corruption, Some(path_of(3).as_path())));
    // Older logs may be absent: they were flushed and removed.
    let fs = three_logs([0, 0, 0]);
    let nums = [FileNum(2), FileNum(3)];
    let mut first = None;
    recover(&fs, Path::new(DIR), &nums, &BTreeMap::new(), None, &mut |_, record| {
        first.get_or_insert(record.first_seq);
        Ok(())
    })
    .unwrap();
    assert_eq!(first, Some(SeqNum(3)));
}

/// A recovery discarded log 3 and started log 4 at the end of what was left of log 2; power was
/// lost before log 3 was removed. Log 5 was prepared and never used.
#[test]
fn logs_that_a_recovery_discarded_are_skipped() {
    let first_end = 40 + 36 + 5;
    for synced in [0, 40] {
        let fs = three_logs([0, 0, 0]);
        cut(&fs, 2, first_end);
        let previous = PreviousWal { file_num: FileNum(2), final_bytes: first_end };
        let mut writer = create(&fs, 4, Some(previous));
        writer.append(SeqNum(4), 1, &[b"fourth"], synced).unwrap();
        let previous = writer.as_previous();
        fs.create(&path_of(5)).unwrap();
        let mut writer = create(&fs, 6, Some(previous));
        writer.append(SeqNum(5), 1, &[b"fifth"], 0).unwrap();
        let (seqs, ends) = recover_seqs(&fs, &[1, 2, 3, 4, 5, 6]).unwrap();
        assert_eq!(seqs, [1, 2, 3, 4, 5]);
        assert_eq!(ends.iter().map(|log| log.record_count).collect::<Vec<_>>(), [2, 1, 0, 1, 0, 1]);
    }
}

/// The header of log 4 was written, but the write reported an error: log 5 was started instead.
#[test]
fn a_log_without_records_may_be_replaced() {
    for oldest in [1, 4] {
        let fs = three_logs([0, 0, 0]);
        let third_end = fs.contents(&path_of(3)).unwrap().len() as u64;
        let previous = Some(PreviousWal { file_num: FileNum(3), final_bytes: third_end });
        create(&fs, 4, previous);
        let mut writer = create(&fs, 5, previous);
        writer.append(SeqNum(7), 1, &[b"seventh"], 40).unwrap();
        let nums: Vec<FileNum> = (oldest..=5).map(FileNum).collect();
        let mut last_seq = None;
        recover(&fs, Path::new(DIR), &nums, &BTreeMap::new(), None, &mut |_, record| {
            last_seq = Some(record.first_seq);
            Ok(())
        })
        .unwrap();
        assert_eq!(last_seq, Some(SeqNum(7)), "from log {oldest}");
    }
}

#[test]
fn two_logs_that_continue_the_same_one_are_corruption() {
    let fs = three_logs([0, 0, 0]);
    let previous = Some(PreviousWal { file_num: FileNum(2), final_bytes: 40 + 36 + 5 + 36 + 6 });
    let mut writer = create(&fs, 4, previous);
    writer.append(SeqNum(5), 1, &[b"fork"], 0).unwrap();
    for (nums, culprit) in [(&[1, 2, 3, 4][..], 4), (&[3, 4], 4)] {
        let nums: Vec<FileNum> = nums.iter().map(|&num| FileNum(num)).collect();
        let error = recover(&fs, Path::new(DIR), &nums, &BTreeMap::new(), None, &mut |_, _| Ok(()))
            .unwrap_err();
        assert_eq!(
            (error.kind(), error.file()),
            (ErrorKind::Corruption, Some(path_of(culprit).as_path()))
        );
    }
}

/// Record 0 is full, the others are short.
#[test]
fn operations_after_damage_are_counted() {
    let ends = |fs: &FaultyFs| {
        let mut writer = create(fs, 1, None);
        let append = |seq: u64| writer.append(SeqNum(2 * seq + 1), 2, &[&[7; 20]], 0).unwrap();
        (0..6).map(append).collect::<Vec<u64>>()
    };
    // Damage to the payload, and to the header, of record 2.
    for (in_record, lost_op_count) in [(10, 8), (1, 0)] {
        let fs = new_fs(1);
        let damaged = ends(&fs)[1];
        fs.flip_byte(&path_of(1), damaged + in_record, 1).unwrap();
        let known = BTreeMap::from([(FileNum(1), damaged + 1)]);
        let salvaged = salvage(
            &fs,
            Path::new(DIR),
            &[FileNum(1)],
            &known,
            Some(SeqNum(1)),
            &mut |_, _| Ok(()),
        )
        .unwrap();
        assert_eq!((salvaged.record_count, salvaged.lost_op_count), (2, lost_op_count));
        assert_eq!(salvaged.damage.unwrap().offset_bytes(), Some(damaged));
    }
}

/// Writes, syncs and seals at random, then loses power.
#[test]
fn a_power_loss_leaves_a_prefix_that_includes_everything_synced() {
    let seed = test_seed();
    eprintln!("KVANT_TEST_SEED={seed}");
    let mut rng = Rng::new(seed);
    for round in 0..400 {
        let fs = new_fs(rng.next_u64());
        let mut nums = vec![1];
        let mut writers = vec![create(&fs, 1, None)];
        fs.sync_dir(Path::new(DIR)).unwrap();
        let (mut next_seq, mut synced_seq) = (1, 0);
        let mut synced_bytes = 0;
        for _ in 0..rng.below(60) {
            let writer = writers.last_mut().unwrap();
            match rng.below(10) {
                0 => {
                    let (num, previous) = (nums.len() as u64 + 1, writer.as_previous());
                    writers.push(create(&fs, num, Some(previous)));
                    fs.sync_dir(Path::new(DIR)).unwrap();
                    nums.push(num);
                    synced_bytes = 0;
                }
                1 | 2 => {
                    for writer in &writers {
                        let path = path_of(writer.as_previous().file_num.0);
                        fs.open_writable(&path).unwrap().sync_data().unwrap();
                    }
                    writers.drain(..writers.len() - 1);
                    synced_seq = next_seq - 1;
                    synced_bytes = writers[0].end_bytes();
                }
                _ => {
                    let op_count = 1 + rng.below(3);
                    let payload_bytes = 1 + rng.below(3000) as usize;
                    let payload = rng.bytes(payload_bytes);
                    writer
                        .append(SeqNum(next_seq), op_count as u32, &[&payload], synced_bytes)
                        .unwrap();
                    next_seq += op_count;
                }
            }
        }
        let style = [CrashStyle::DropUnsynced, CrashStyle::KeepAll, CrashStyle::Random]
            [rng.below(3) as usize];
        let image = fs.crash_image(rng.next_u64(), style);
        let case = format!("seed {seed}, round {round}, {style:?}");
        let (seqs, _) =
            recover_seqs(&image, &nums).unwrap_or_else(|error| panic!("{case}: {error}"));
        let last = seqs.last().copied().unwrap_or(0);
        assert_eq!(seqs, (1..=last).collect::<Vec<_>>(), "{case}");
        assert!(
            (synced_seq..next_seq).contains(&last),
            "{case}: {last} of {synced_seq} synced, {next_seq} next"
        );
        if style == CrashStyle::KeepAll {
            assert_eq!(last, next_seq - 1, "{case}");
        }
    }
}
