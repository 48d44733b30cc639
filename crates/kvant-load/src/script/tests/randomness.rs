//! Seeds of threads, and warnings about scripts without seeds.

use super::{load_with, next, options};

const DRAWS: &str =
    "function request() return wrk.format('GET', '/' .. math.random(1, 1000000000)) end";

fn draws(script: &str, options: &super::Options) -> Vec<Vec<String>> {
    let mut sources = load_with(script, options).expect("starts").sources();
    // The first thread has already drawn one.
    for source in &mut sources[1..] {
        next(source);
    }
    sources.iter_mut().map(|source| (0..5).map(|_| next(source)).collect()).collect()
}

#[test]
fn each_thread_has_its_own_sequence_and_a_run_repeats_it() {
    let drawn = draws(DRAWS, &options(3));
    assert!(drawn[0] != drawn[1] && drawn[1] != drawn[2] && drawn[0] != drawn[2]);
    assert_eq!(drawn, draws(DRAWS, &options(3)));
    let mut seeded = options(3);
    seeded.seed = Some(77);
    let other = draws(DRAWS, &seeded);
    assert_ne!(drawn, other);
    seeded.seed = Some(u64::MAX);
    assert_ne!(draws(DRAWS, &seeded), other);
}

#[test]
fn the_seed_is_the_sum_of_run_and_thread() {
    let script =
        "local drawn = math.random() math.randomseed(41 + wrk.threads - 2 + (wrk.thread_id or 2))
        assert(drawn == math.random())";
    let mut seeded = options(2);
    seeded.seed = Some(41);
    load_with(script, &seeded).expect("the same numbers");
}

#[test]
fn all_threads_draw_the_same_in_exact_mode() {
    let mut exact = options(2);
    exact.is_wrk2_exact = true;
    exact.seed = Some(3);
    let drawn = draws(DRAWS, &exact);
    assert_eq!(drawn[0], drawn[1]);
}

#[test]
fn scripts_without_seeds_are_warned_about() {
    let warnings = |script: &str, options: &super::Options| {
        load_with(script, options).expect("starts").warnings().to_vec()
    };
    let unseeded = warnings(DRAWS, &options(2));
    assert_eq!(
        unseeded,
        [
            "this script never seeds its generator: under wrk2 every thread would send the same sequence; \
          here each thread has its own seed"
        ]
    );
    let mut exact = options(2);
    exact.is_wrk2_exact = true;
    assert_eq!(
        warnings(DRAWS, &exact),
        ["this script never seeds its generator: every thread sends the same sequence"]
    );
    let none: [&str; 0] = [];
    assert_eq!(warnings("-- math.random is not used\nlocal s = 'math.random'", &options(2)), none);
    assert_eq!(
        warnings(&format!("math.randomseed(5 + (wrk.thread_id or 9)) {DRAWS}"), &options(2)),
        none
    );
    assert_eq!(
        warnings(
            &format!("function init() math.randomseed(wrk.thread_id) end {DRAWS}"),
            &options(2)
        ),
        none
    );
    assert_eq!(warnings(&format!("math.randomseed(5) {DRAWS}"), &options(1)), none);
    assert_eq!(
        warnings(&format!("math.randomseed(5) {DRAWS}"), &options(2)),
        [
            "this script seeds the generator of each thread with the same number (5): every thread sends the same \
          sequence; add wrk.thread_id to the seed"
        ]
    );
}
