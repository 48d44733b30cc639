use super::*;
use crate::elf::Layout;
use crate::maps;
use crate::recording::{Facts, Frame, Function, Stack};
use kvant_env::host::read_text;
use std::hint::black_box;
use std::path::Path;

#[inline(never)]
fn known_function(x: u64) -> u64 {
    known_part(black_box(x)) ^ 1
}

#[inline(always)]
fn known_part(x: u64) -> u64 {
    black_box(black_box(x) * 31) + 7
}

fn recording(addresses: &[(u64, bool)]) -> Recording {
    Recording {
        facts: Facts {
            process_id: std::process::id(),
            modules: maps::own_modules(),
            ..Facts::default()
        },
        names: vec![String::new()],
        stacks: vec![Stack { parent: 0, frame: 0 }],
        frames: addresses
            .iter()
            .map(|&(address, is_return)| Frame { address, is_kernel: false, is_return })
            .collect(),
        ..Recording::default()
    }
}

/// The number of frames with the name of a function, not of a module.
fn named_count(recording: &Recording) -> usize {
    let is_named = |Function { name, file, .. }: &Function| {
        !name.starts_with("0x") && !file.ends_with(&format!("/{name}"))
    };
    recording.symbols.iter().filter(|functions| is_named(&functions[0])).count()
}

fn names(functions: &[Function]) -> Vec<&str> {
    functions.iter().map(|function| &function.name[..]).collect()
}

const KNOWN: &str = "kvant_profiler::symbols::tests::known_function";
/// Debug information of line tables omits its modules.
const PART: &str = "known_part";

#[test]
fn functions_have_names_files_lines_and_inlined_functions() {
    let start = known_function as fn(u64) -> u64 as usize as u64;
    black_box(known_function(3));
    // The whole function, and perhaps the beginning of the next.
    let addresses: Vec<(u64, bool)> = (start..start + 96).map(|address| (address, false)).collect();
    let mut recording = recording(&addresses);
    assert_eq!((resolve(&mut recording), recording.symbols.len()), (Vec::new(), 96));
    let first = recording.symbols[0].last().unwrap();
    assert_eq!(first.name, KNOWN);
    assert!(first.file.ends_with("symbols/tests.rs"), "{first:?}");
    assert!(first.line > 0, "{first:?}");
    let inlined = recording.symbols.iter().find(|functions| functions[0].name.ends_with(PART));
    assert_eq!(names(inlined.expect("the part is inlined")).last(), Some(&KNOWN));
}

#[test]
fn a_return_address_belongs_to_the_preceding_call() {
    let start = known_function as fn(u64) -> u64 as usize as u64;
    let mut recording = recording(&[(start, false), (start, true), (start + 1, true)]);
    resolve(&mut recording);
    let outermost = |index: usize| &recording.symbols[index].last().unwrap().name;
    assert_eq!((&outermost(0)[..], &outermost(2)[..]), (KNOWN, KNOWN));
    assert_ne!(outermost(1), KNOWN);
}

#[test]
fn libraries_are_resolved_by_their_symbol_tables() {
    let getpid = libc::getpid as *const () as u64;
    let mut recording = recording(&[(getpid, false)]);
    let problems = resolve(&mut recording);
    assert_eq!(named_count(&recording), 1, "{problems:?} {:?}", recording.symbols);
    assert!(recording.symbols[0][0].name.contains("getpid"), "{:?}", recording.symbols);
}

#[test]
fn addresses_without_names_are_one_function_per_module() {
    let start = known_function as fn(u64) -> u64 as usize as u64;
    let mut recording = recording(&[(start, false), (start + 4, false), (start + 4096, true)]);
    for module in &mut recording.facts.modules {
        module.build_id.push(1);
    }
    resolve(&mut recording);
    assert_eq!(named_count(&recording), 0);
    let path = &recording.facts.modules[0].path;
    let expected = Function::new(path.rsplit('/').next().unwrap(), path);
    assert_eq!(recording.symbols, vec![vec![expected]; 3]);
}

#[test]
fn memmove_is_not_resolved_to_another_name() {
    // The address is that of the processor's variant, which the library does not export.
    let memmove = libc::memmove as *const () as u64;
    let mut recording = recording(&[(memmove + 4, false)]);
    resolve(&mut recording);
    let name = &recording.symbols[0][0].name;
    let is_library =
        recording.facts.modules.iter().any(|module| module.path.ends_with(&format!("/{name}")));
    assert!(name.contains("mem") || is_library, "{name}");
}

#[test]
fn vdso_functions_have_names() {
    let vdso = maps::own_modules().into_iter().find(|module| module.path == "[vdso]").unwrap();
    let (offset, name) = vdso::functions().unwrap().remove(0);
    let mut recording = recording(&[(vdso.start + offset, false)]);
    resolve(&mut recording);
    assert_eq!(named_count(&recording), 1);
    assert_eq!(names(&recording.symbols[0]), [name]);
}

#[test]
fn a_file_of_another_build_is_not_used() {
    let start = known_function as fn(u64) -> u64 as usize as u64;
    let mut recording = recording(&[(start, false), (16, false)]);
    for module in &mut recording.facts.modules {
        module.build_id.push(1);
    }
    let problems = resolve(&mut recording);
    assert_eq!((named_count(&recording), problems.len()), (0, 1), "{problems:?}");
    assert!(problems[0].contains("build ids differ"), "{problems:?}");
    let name = &recording.symbols[0][0].name;
    assert!(name.starts_with("kvant_profiler-"), "{name}");
    assert_eq!(names(&recording.symbols[1]), ["0x10"]);
}

#[test]
fn resolved_names_are_kept() {
    let mut recording = recording(&[(16, false)]);
    recording.symbols = vec![vec![Function::new("there", "")]];
    resolve(&mut recording);
    assert_eq!(named_count(&recording), 1);
    assert_eq!(names(&recording.symbols[0]), ["there"]);
}

#[test]
fn kernel_functions_have_names_where_addresses_are_visible() {
    let mut recording = recording(&[(u64::MAX - 4095, false)]);
    recording.frames[0].is_kernel = true;
    let text = read_text(Path::new("/proc/kallsyms")).unwrap_or_default();
    let shown = text.lines().find_map(|line| {
        let mut parts = line.split(' ');
        let address =
            u64::from_str_radix(parts.next()?, 16).ok().filter(|address| *address != 0)?;
        (parts.next()? == "T").then_some(address)
    });
    if let Some(address) = shown {
        recording.frames[0].address = address;
    }
    let problems = resolve(&mut recording);
    assert_eq!(named_count(&recording), usize::from(shown.is_some()), "{problems:?}");
    assert_eq!(problems.is_empty(), shown.is_some(), "{problems:?}");
    assert!(recording.symbols[0][0].file.starts_with("kernel"), "{:?}", recording.symbols);
}

#[test]
fn a_process_of_the_same_build_can_name_a_recording() {
    let start = known_function as fn(u64) -> u64 as usize as u64;
    let mut recording = recording(&[(start, false)]);
    let own = visible();
    assert_eq!(Identities::of_text(&own.to_text()), own);
    assert!(own.can_name(&recording), "{own:?} {:?}", recording.facts.modules);
    assert!(!Identities::default().can_name(&recording));
    // On another machine, at another path, the file is found by its build id.
    for module in &mut recording.facts.modules {
        if module.path.contains("kvant_profiler") {
            module.path = "/nowhere/kvant".into();
        }
    }
    recording.facts.process_id = 0;
    assert!(own.can_name(&recording));
    resolve(&mut recording);
    assert_eq!(named_count(&recording), 1);
    for module in &mut recording.facts.modules {
        module.build_id.clear();
    }
    assert!(!own.can_name(&recording));
}

/// `[vdso]` is the kernel's, and has no build id.
#[test]
fn only_a_process_on_the_same_machine_can_name_its_vdso() {
    let own = visible();
    let mut recording = recording(&[(0x1000, false)]);
    recording.facts.modules = vec![Module {
        path: "[vdso]".into(),
        start: 0x1000,
        end: 0x2000,
        file_offset_bytes: 0,
        build_id: Vec::new(),
    }];
    assert!(own.can_name(&recording));
    let text = own.to_text();
    let elsewhere = text.split(',').filter(|part| !part.starts_with("vdso:")).collect::<Vec<_>>();
    assert!(!Identities::of_text(&elsewhere.join(",")).can_name(&recording));
}

#[test]
fn other_files_have_no_layout() {
    for head in [&b""[..], b"\x7fELF", b"#!/bin/sh\n", &[0; 4096]] {
        assert!(Layout::parse(head).is_err(), "{head:?}");
    }
}
