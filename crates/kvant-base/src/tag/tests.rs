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
