use super::super::testing::recording;
use super::*;
use kvant_base::wait::WaitKind;

#[test]
fn each_line_is_a_stack_with_its_weight() {
    assert_eq!(
        collapsed(&recording(), Kind::Cpu),
        "worker,0;get/table;main;get;read::<[u8, 4]>_[i] 7\n\
         worker,0;get/table;main;get;read::<[u8, 4]>_[i];copy user_[k] 42\n"
    );
    assert_eq!(
        collapsed(&recording(), Kind::Alloc),
        "worker,0;get/table;main;get;read::<[u8, 4]>_[i] 512\n"
    );
}

#[test]
fn a_sample_without_frames_is_its_thread_and_tag() {
    assert_eq!(
        collapsed(&recording(), Kind::Wait(WaitKind::Contention)),
        "thread 8;none/none 40\n"
    );
    assert_eq!(collapsed(&recording(), Kind::Holder), "");
}

#[test]
fn without_symbols_frames_are_addresses() {
    let mut recording = recording();
    recording.symbols.clear();
    assert_eq!(collapsed(&recording, Kind::Alloc), "worker,0;get/table;0x1100;0x1200 512\n");
}

#[test]
fn cpu_time_without_samples_is_a_line_of_its_own() {
    let mut recording = recording();
    recording.facts.process_cpu_ns = 60;
    assert!(collapsed(&recording, Kind::Cpu).starts_with("[not sampled] 11\n"));
    assert!(!collapsed(&recording, Kind::Alloc).contains("not sampled"));
}
