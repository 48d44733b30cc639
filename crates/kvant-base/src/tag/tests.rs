use super::*;

#[test]
fn work_inside_of_work_nests() {
    assert_eq!(Tag::current_code(), 0);
    {
        let _put = enter(Activity::Put);
        {
            let _wal = stage(Stage::Wal);
            let inner = Tag::of_code(Tag::current_code());
            assert_eq!((inner.activity, inner.stage), (Activity::Put, Stage::Wal));
        }
        assert_eq!(Tag::of_code(Tag::current_code()).stage, Stage::None);
    }
    assert_eq!(Tag::current_code(), 0);
}

#[test]
fn work_may_turn_out_to_be_for_somebody_and_go_on_with_another_part() {
    let now = || Tag::of_code(Tag::current_code());
    let tag = |activity, stage| Tag { activity, stage };
    {
        let work = enter_at(Activity::None, Stage::Parse);
        work.is_for(Activity::Get, Stage::Dispatch);
        assert_eq!(now(), tag(Activity::Get, Stage::Dispatch));
        {
            let reading = stage(Stage::Memtable);
            reading.stage(Stage::Table);
            assert_eq!(now(), tag(Activity::Get, Stage::Table));
        }
        assert_eq!(now(), tag(Activity::Get, Stage::Dispatch));
    }
    assert_eq!(now(), Tag::default());
}

#[test]
fn every_tag_survives_its_number() {
    for activity in Activity::ALL {
        for stage in Stage::ALL {
            let tag = Tag { activity, stage };
            assert_eq!(Tag::of_code(tag.code()), tag);
        }
    }
}

#[test]
fn a_number_of_a_later_version_is_no_tag() {
    assert_eq!(Tag::of_code(0xffff), Tag::default());
}
