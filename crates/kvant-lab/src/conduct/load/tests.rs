use super::{NICE_BESIDE, with_less_priority};
use rustix::process::getpriority_process;

#[test]
fn threads_of_a_load_beside_have_less_priority_and_those_of_others_keep_theirs() {
    let before = getpriority_process(None).unwrap();
    let of_worker = with_less_priority(|| {
        let worker = std::thread::spawn(|| getpriority_process(None).unwrap());
        Ok(worker.join().unwrap())
    });
    assert_eq!(of_worker.unwrap(), (before + NICE_BESIDE).min(19));
    assert_eq!(getpriority_process(None).unwrap(), before);
}
