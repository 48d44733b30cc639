use super::*;

#[test]
fn own_functions_and_those_of_the_c_library_are_code_but_data_is_not() {
    let modules = refresh();
    let own = refresh as *const () as usize;
    let foreign = libc::getppid as *const () as usize;
    let data = Box::new(1);
    assert!(is_code(own) && is_own_code(own));
    assert!(is_code(foreign));
    assert!(!is_code(&raw const *data as usize) && !is_code(0) && !is_code(usize::MAX));

    let executable = std::env::current_exe().expect("a test has a binary");
    assert_eq!(modules[0].path, executable.to_string_lossy());
    assert!(modules.iter().all(|module| module.start < module.end));
    assert!(modules.iter().any(|module| module.path == "[vdso]"));
    // Every Rust program and every C library of a distribution has a build id.
    assert!(!modules[0].build_id.is_empty());
}
