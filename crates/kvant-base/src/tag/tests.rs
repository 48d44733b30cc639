use super::*;

#[test]
fn tags_nest() {
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
fn activity_and_stage_can_change_within_a_tag() {
    let now = || Tag::of_code(Tag::current_code());
    let tag = |activity, stage| Tag { activity, stage };
    {
        let work = enter_at(Activity::None, Stage::Parse);
        work.set_activity(Activity::Get, Stage::Dispatch);
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
fn tags_round_trip_through_their_numbers() {
    for activity in Activity::ALL {
        for stage in Stage::ALL {
            let tag = Tag { activity, stage };
            assert_eq!(Tag::of_code(tag.code()), tag);
        }
    }
}

#[test]
fn unknown_numbers_become_the_default_tag() {
    assert_eq!(Tag::of_code(0xffff), Tag::default());
}
