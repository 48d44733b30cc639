//! A server on a small file system that the server and another program fill, empty and fill again,
//! with restarts in between.
//!
//! One round in `cargo test`; more with `KVANT_BRIM_MINUTES` (`cargo xtask torture brim`). Each
//! round:
//! 1. puts records until one is rejected;
//! 2. lets another program take the rest of the space, once, continuously or not at all;
//! 3. stops or kills the server and restarts it, or lets it run;
//! 4. deletes keys, fewer than the reserve is computed for: none may be rejected;
//! 5. frees the space of the other program: puts must be accepted again, and every record must be
//!    correct.

use crate::clients::seed;
use crate::small_disk::{
    Records, SmallDisk, assert_records, delete, delete_most, fill, put_when_healed, start,
};
use kvant_env::rng::Rng;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Deletes per round, while another program occupies the rest of the disk.
const DELETES_MAX: usize = 100_000;

/// Tells a thread to end when dropped, even if the test fails.
struct SetWhenDropped<'a>(&'a AtomicBool);

impl Drop for SetWhenDropped<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Totals of all rounds.
#[derive(Debug, Default)]
struct Figures {
    rounds: u64,
    stops: u64,
    kills: u64,
    rounds_beside_a_filler: u64,
    puts_until_full: usize,
    deletes: usize,
    slowest_deletes: Duration,
    slowest_heal: Duration,
}

#[test]
fn at_the_brim_deletes_go_on_puts_come_back_and_nothing_is_lost() {
    let Some(disk) = SmallDisk::mount(80) else { return };
    let minutes =
        std::env::var("KVANT_BRIM_MINUTES").map_or(0, |text| text.parse().expect("minutes"));
    let end = Instant::now() + Duration::from_secs(60 * minutes);
    let mut rng = Rng::new(seed("brim"));
    let mut records = Records::new();
    let mut figures = Figures::default();
    let (mut server, mut connection) = start(&disk.data());
    while figures.rounds == 0 || Instant::now() < end {
        figures.rounds += 1;
        let before = records.len();
        // Small values take too long in a debug build.
        let value_bytes = if minutes == 0 { 16_000 } else { 200 << rng.below(10) };
        fill(&mut connection, &mut rng, &mut records, value_bytes);
        figures.puts_until_full += records.len() - before;
        let filler = rng.below(3);
        let is_over = AtomicBool::new(false);
        (server, connection) = std::thread::scope(|scope| {
            let _end_of_filler = SetWhenDropped(&is_over);
            match filler {
                0 => {}
                1 => disk.fill(),
                _ => {
                    scope.spawn(|| disk.keep_filling(&is_over));
                }
            }
            figures.rounds_beside_a_filler += u64::from(filler > 0);
            match rng.below(3) {
                0 => {}
                1 => {
                    assert_eq!(server.stop().code, Some(0));
                    (server, connection) = start(&disk.data());
                    figures.stops += 1;
                }
                _ => {
                    server.kill();
                    (server, connection) = start(&disk.data());
                    figures.kills += 1;
                }
            }
            let since = Instant::now();
            let absent: Vec<String> =
                (0..rng.below(30_000)).map(|number| format!("{number:064}")).collect();
            delete(&mut connection, &absent);
            let before = records.len();
            let deletes_max = DELETES_MAX - absent.len();
            delete_most(&mut connection, &mut rng, &mut records, deletes_max);
            figures.deletes += absent.len() + before - records.len();
            figures.slowest_deletes = figures.slowest_deletes.max(since.elapsed());
            assert_records(&mut connection, &records);
            (server, connection)
        });
        if filler > 0 {
            disk.free();
        }
        // Deleting the other keys makes room, however small they are.
        delete_most(&mut connection, &mut rng, &mut records, usize::MAX);
        figures.slowest_heal = figures.slowest_heal.max(put_when_healed(&mut connection));
        assert_records(&mut connection, &records);
        if minutes > 0 {
            println!("{figures:?}, {} records", records.len());
        }
    }
    assert_eq!(server.stop().code, Some(0));
    println!("{figures:#?}");
}
