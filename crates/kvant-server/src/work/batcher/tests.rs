use super::*;
use crate::key::Key;
use bytes::Bytes;

pub(in crate::work) fn pending(queued_ns: u64, value: Option<Bytes>) -> PendingWrite {
    let key = Key::from(&queued_ns.to_le_bytes()[..]);
    PendingWrite {
        write: Write::new(key, value, None),
        outcome: Rc::default(),
        waits_since: None,
        work: StorageWork { queued_ns, ..StorageWork::default() },
        _memory: None,
    }
}

fn grouped(mut writes: Vec<PendingWrite>) -> Vec<u64> {
    group_by_kind(&mut writes);
    writes.iter().map(|pending| pending.work.queued_ns).collect()
}

#[test]
fn the_kind_of_the_oldest_write_goes_first() {
    let put = |queued_ns| pending(queued_ns, Some(Bytes::new()));
    let delete = |queued_ns| pending(queued_ns, None);
    assert_eq!(grouped(vec![put(1), delete(2), put(3), delete(4)]), [1, 3, 2, 4]);
    // A delete that waits for the end of a stall is not overtaken by puts that came after it.
    assert_eq!(grouped(vec![put(5), put(6), delete(2), put(7)]), [2, 5, 6, 7]);
    assert!(grouped(Vec::new()).is_empty());
}
