//! The real server on a small file system that the server or another program fills.

use crate::clients::seed;
use crate::small_disk::{
    Records, SmallDisk, assert_records, delete, delete_most, exchange, fill, health, key,
    put_when_healed, request, start,
};
use kvant_env::rng::Rng;
use std::fs;

#[test]
fn a_disk_that_the_server_filled_takes_deletes_and_puts_again() {
    let Some(disk) = SmallDisk::mount(80) else { return };
    let mut rng = Rng::new(seed("brim"));
    let mut records = Records::new();
    let (server, mut connection) = start(&disk.data());
    fill(&mut connection, &mut rng, &mut records, 8_000);
    // Usually 6,000; fewer where compaction had no CPU and its inputs still take space.
    assert!(records.len() > 3_000, "{} records of 8,000 bytes", records.len());
    let rejected = exchange(&mut connection, &request("PUT", "more", &[0; 8_000]));
    assert_eq!(rejected.status, 507);
    assert!(String::from_utf8_lossy(&rejected.body).contains("no-space"));
    delete_most(&mut connection, &mut rng, &mut records, usize::MAX);
    put_when_healed(&mut connection);
    assert_eq!(health(&mut connection), "ok");
    fill(&mut connection, &mut rng, &mut records, 8_000);
    assert_eq!(server.stop().code, Some(0));

    let (server, mut connection) = start(&disk.data());
    delete_most(&mut connection, &mut rng, &mut records, usize::MAX);
    put_when_healed(&mut connection);
    assert_records(&mut connection, &records);
    server.kill();
}

#[test]
fn deletes_go_on_beside_a_program_that_fills_the_disk_and_reads_without_a_byte_left() {
    let Some(disk) = SmallDisk::mount(80) else { return };
    let mut rng = Rng::new(seed("filler"));
    let (server, mut connection) = start(&disk.data());
    let mut records = Records::new();
    let puts: Vec<_> = (0..2_000).map(|number| (key(number), rng.bytes(4_000))).collect();
    for (key, value) in puts {
        assert_eq!(exchange(&mut connection, &request("PUT", &key, &value)).status, 201);
        records.insert(key, value);
    }
    disk.fill();
    let absent: Vec<String> = (0..20_000).map(|number| format!("{number:064}")).collect();
    delete(&mut connection, &absent);
    delete_most(&mut connection, &mut rng, &mut records, usize::MAX);
    server.kill();

    fs::remove_file(disk.data().join("RESERVE")).expect("a reserve");
    disk.fill();
    let (_server, mut connection) = start(&disk.data());
    assert_records(&mut connection, &records);
    assert_eq!(health(&mut connection), "no-space");
    assert_eq!(exchange(&mut connection, &request("PUT", "more", b"")).status, 507);
    // A delete finds space where opening has removed an obsolete file.
    let deleted = exchange(&mut connection, &request("DELETE", "more", b"")).status;
    assert!(matches!(deleted, 202 | 507), "{deleted}");
    disk.free();
    put_when_healed(&mut connection);
    assert_records(&mut connection, &records);
}
