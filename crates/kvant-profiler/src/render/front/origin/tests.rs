use super::{Origin, of};

#[test]
fn a_function_belongs_to_the_crate_that_its_name_starts_with() {
    let own = "crates/kvant-engine/src/table/reader.rs";
    let std = "/rustc/0123/library/core/src/ops/function.rs";
    let package = "registry/src/index/hyper-1.12.0/src/proto/h1/conn.rs";
    for (name, file, origin) in [
        ("kvant_engine::table::reader::get", own, Origin::Own),
        ("<kvant_engine::Db as core::ops::drop::Drop>::drop", own, Origin::Own),
        ("<&mut kvant_engine::Db as core::fmt::Debug>::fmt", "", Origin::Own),
        ("core::ptr::drop_in_place<kvant_engine::Db>", std, Origin::Library),
        ("<alloc::vec::Vec<kvant_engine::Db> as core::clone::Clone>::clone", std, Origin::Library),
        (
            "hyper::proto::h1::conn::Conn<I,B,T>::poll_read",
            &format!("/x/{package}"),
            Origin::Library,
        ),
        ("hyper::proto::h1::conn::Conn<I,B,T>::poll_read", "", Origin::Library),
        ("burn::seventy", "crates/kvant-profiler/tests/known/burn.rs", Origin::Own),
        ("ZSTD_compressBlock", "zstd/lib/compress/zstd_compress.c", Origin::Native),
        ("clone3", "libc.so.6", Origin::Native),
        ("__rust_alloc", "", Origin::Library),
        ("0x7f0012345678", "", Origin::Unknown),
    ] {
        assert_eq!(of(name, file, false), origin, "{name} in {file:?}");
    }
}

#[test]
fn kernel_frames_are_kernel_with_any_name() {
    assert_eq!(of("vfs_write", "kernel", false), Origin::Kernel);
    assert_eq!(of("0xffffffff81000000", "", true), Origin::Kernel);
}

#[test]
fn inlined_functions_without_modules_belong_to_their_files() {
    for (name, file, origin) in [
        ("thread_goes_on", "crates/kvant-profiler/src/collect/wait.rs", Origin::Own),
        ("add<u32>", "/rustc/0123/library/core/src/ptr/mod.rs", Origin::Library),
        ("poll", "/x/registry/src/x/tokio-1.0/src/task.rs", Origin::Library),
        ("ZSTD_compress", "zstd/lib/compress/zstd_compress.c", Origin::Native),
        ("memmove", "/lib/libc.so.6", Origin::Native),
    ] {
        assert_eq!(of(name, file, false), origin, "{name} in {file}");
    }
}
