use super::elf::{Layout, range_of, vdso_functions};
use super::*;
use crate::recording::{Facts, Stack};
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

/// What this process executes, as a recording has it.
fn own_modules() -> Vec<Module> {
    let maps = read_text(Path::new("/proc/self/maps")).unwrap();
    let lines = maps.lines().filter(|line| line.split_whitespace().nth(1).unwrap().contains('x'));
    lines
        .map(|line| {
            let (start, end) = range_of(line).unwrap();
            let path = line.splitn(6, ' ').nth(5).unwrap_or_default().trim().to_owned();
            let offset = line.split_whitespace().nth(2).unwrap();
            Module {
                build_id: Layout::read(Path::new(&path))
                    .map_or(Vec::new(), |layout| layout.build_id),
                path,
                start,
                end,
                file_offset_bytes: u64::from_str_radix(offset, 16).unwrap(),
            }
        })
        .collect()
}

fn recording(addresses: &[(u64, bool)]) -> Recording {
    Recording {
        facts: Facts { process_id: std::process::id(), modules: own_modules(), ..Facts::default() },
        names: vec![String::new()],
        stacks: vec![Stack { parent: 0, frame: 0 }],
        frames: addresses
            .iter()
            .map(|&(address, is_return)| Frame { address, is_kernel: false, is_return })
            .collect(),
        ..Recording::default()
    }
}

fn names(functions: &[Function]) -> Vec<&str> {
    functions.iter().map(|function| &function.name[..]).collect()
}

const KNOWN: &str = "kvant_profiler::symbols::tests::known_function";
/// Without its modules where the debug information is line tables only.
const PART: &str = "known_part";

#[test]
fn functions_have_their_names_files_lines_and_what_was_inlined() {
    let start = known_function as fn(u64) -> u64 as usize as u64;
    black_box(known_function(3));
    // All of the function, and perhaps the beginning of the next one.
    let addresses: Vec<(u64, bool)> = (start..start + 96).map(|address| (address, false)).collect();
    let mut recording = recording(&addresses);
    let resolved = resolve(&mut recording);
    assert_eq!((resolved.frame_count, resolved.problems), (96, Vec::<String>::new()));
    let first = recording.symbols[0].last().unwrap();
    assert_eq!(first.name, KNOWN);
    assert!(first.file.ends_with("symbols/tests.rs"), "{first:?}");
    assert!(first.line > 0, "{first:?}");
    let inlined = recording.symbols.iter().find(|functions| functions[0].name.ends_with(PART));
    assert_eq!(names(inlined.expect("the part is inlined")).last(), Some(&KNOWN));
}

#[test]
fn a_return_address_belongs_to_the_call_before_it() {
    let start = known_function as fn(u64) -> u64 as usize as u64;
    let mut recording = recording(&[(start, false), (start, true), (start + 1, true)]);
    resolve(&mut recording);
    let outermost = |index: usize| &recording.symbols[index].last().unwrap().name;
    assert_eq!((&outermost(0)[..], &outermost(2)[..]), (KNOWN, KNOWN));
    assert_ne!(outermost(1), KNOWN);
}

#[test]
fn libraries_have_their_tables_of_symbols() {
    let getpid = libc::getpid as *const () as u64;
    let mut recording = recording(&[(getpid, false)]);
    let resolved = resolve(&mut recording);
    assert_eq!(resolved.named_count, 1, "{resolved:?} {:?}", recording.symbols);
    assert!(recording.symbols[0][0].name.contains("getpid"), "{:?}", recording.symbols);
}

#[test]
fn what_a_module_leaves_without_names_is_one_function() {
    let start = known_function as fn(u64) -> u64 as usize as u64;
    let mut recording = recording(&[(start, false), (start + 4, false), (start + 4096, true)]);
    for module in &mut recording.facts.modules {
        module.build_id.push(1);
    }
    assert_eq!(resolve(&mut recording).named_count, 0);
    let path = &recording.facts.modules[0].path;
    let expected = nameless(path.rsplit('/').next().unwrap().to_owned(), path);
    assert_eq!(recording.symbols, vec![expected; 3]);
}

#[test]
fn memory_is_copied_by_nothing_of_another_name() {
    // The address is that of the variant for this processor, which the library does not export.
    let memmove = libc::memmove as *const () as u64;
    let mut recording = recording(&[(memmove + 4, false)]);
    resolve(&mut recording);
    let name = &recording.symbols[0][0].name;
    let is_library =
        recording.facts.modules.iter().any(|module| module.path.ends_with(&format!("/{name}")));
    assert!(name.contains("mem") || is_library, "{name}");
}

#[test]
fn what_the_kernel_lends_has_names() {
    let vdso = own_modules().into_iter().find(|module| module.path == "[vdso]").unwrap();
    let (offset, name) = vdso_functions().unwrap().remove(0);
    let mut recording = recording(&[(vdso.start + offset, false)]);
    assert_eq!(resolve(&mut recording).named_count, 1);
    assert_eq!(names(&recording.symbols[0]), [name]);
}

#[test]
fn another_build_is_not_believed() {
    let start = known_function as fn(u64) -> u64 as usize as u64;
    let mut recording = recording(&[(start, false), (16, false)]);
    for module in &mut recording.facts.modules {
        module.build_id.push(1);
    }
    let resolved = resolve(&mut recording);
    assert_eq!((resolved.named_count, resolved.problems.len()), (0, 1), "{resolved:?}");
    assert!(resolved.problems[0].contains("build ids differ"), "{resolved:?}");
    let name = &recording.symbols[0][0].name;
    assert!(name.starts_with("kvant_profiler-"), "{name}");
    assert_eq!(names(&recording.symbols[1]), ["0x10"]);
}

#[test]
fn names_that_are_there_stay() {
    let mut recording = recording(&[(16, false)]);
    recording.symbols = vec![nameless("there".into(), "")];
    assert_eq!(resolve(&mut recording).named_count, 1);
    assert_eq!(names(&recording.symbols[0]), ["there"]);
}

#[test]
fn the_kernels_functions_have_names_where_it_shows_them() {
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
    let resolved = resolve(&mut recording);
    assert_eq!(resolved.named_count, usize::from(shown.is_some()), "{resolved:?}");
    assert_eq!(resolved.problems.is_empty(), shown.is_some(), "{resolved:?}");
    assert!(recording.symbols[0][0].file.starts_with("kernel"), "{:?}", recording.symbols);
}

#[test]
fn who_runs_the_same_build_can_name_it() {
    let start = known_function as fn(u64) -> u64 as usize as u64;
    let mut recording = recording(&[(start, false)]);
    let own = visible();
    assert_eq!(Identities::of_text(&own.to_text()), own);
    assert!(own.can_name(&recording), "{own:?} {:?}", recording.facts.modules);
    assert!(!Identities::default().can_name(&recording));
    // Another machine, another path: the file is found by what it is.
    for module in &mut recording.facts.modules {
        if module.path.contains("kvant_profiler") {
            module.path = "/nowhere/kvant".into();
        }
    }
    recording.facts.process_id = 0;
    assert!(own.can_name(&recording));
    assert_eq!(resolve(&mut recording).named_count, 1);
    for module in &mut recording.facts.modules {
        module.build_id.clear();
    }
    assert!(!own.can_name(&recording));
}

#[test]
fn names_are_demangled_without_their_hashes() {
    for (mangled, name) in [
        ("_ZN5alpha4beta17h0123456789abcdefE", "alpha::beta"),
        ("_RNvNtCs1234_5alpha4beta5gamma", "alpha::beta::gamma"),
        ("luaV_execute", "luaV_execute"),
    ] {
        assert_eq!(demangled(mangled), name);
    }
}

#[test]
fn what_is_no_executable_has_no_layout() {
    for head in [&b""[..], b"\x7fELF", b"#!/bin/sh\n", &[0; 4096]] {
        assert!(Layout::parse(head).is_err(), "{head:?}");
    }
}
