use super::*;
use kvant_env::host;
use object::elf::{
    NT_GNU_BUILD_ID, PT_LOAD, PT_NOTE, SHT_DYNSYM, SHT_PROGBITS, SHT_STRTAB, SHT_SYMTAB,
};
use std::fs;

/// The code of the test library, by file offset and address.
const CODE: u64 = 0x1000;
const CODE_BYTES: u64 = 0x1000;
const BUILD_ID: [u8; 4] = [0xab, 0x01, 0x02, 0x03];

/// A 64-bit ELF file with code, a build id, and one symbol table: names, addresses, sizes.
fn elf(build_id: &[u8], table: u32, functions: &[(&str, u64, u64)]) -> Vec<u8> {
    const HEADER: u64 = 64;
    const PROGRAM_HEADER: u64 = 56;
    let mut note = Vec::new();
    for number in [4, build_id.len() as u32, NT_GNU_BUILD_ID.0] {
        note.extend_from_slice(&number.to_le_bytes());
    }
    note.extend_from_slice(b"GNU\0");
    note.extend_from_slice(build_id);
    let mut names = vec![0];
    let mut symbols = vec![0; 24];
    for (name, address, size) in functions {
        symbols.extend_from_slice(&(names.len() as u32).to_le_bytes());
        // A global function in section 1.
        symbols.extend_from_slice(&[0x12, 0, 1, 0]);
        symbols.extend_from_slice(&address.to_le_bytes());
        symbols.extend_from_slice(&size.to_le_bytes());
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    let note_at = HEADER + 2 * PROGRAM_HEADER;
    let symbols_at = CODE + CODE_BYTES;
    let names_at = symbols_at + symbols.len() as u64;
    let sections_at = (names_at + names.len() as u64).next_multiple_of(8);

    let mut file = b"\x7fELF\x02\x01\x01\0\0\0\0\0\0\0\0\0".to_vec();
    // A shared object for x86-64, version 1; then entry, program headers, section headers, flags.
    file.extend_from_slice(&[3, 0, 62, 0, 1, 0, 0, 0]);
    for number in [0, HEADER, sections_at] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    file.extend_from_slice(&0u32.to_le_bytes());
    // Sizes and counts of headers; the names of sections are in section 3.
    for number in [HEADER as u16, PROGRAM_HEADER as u16, 2, 64, 4, 3] {
        file.extend_from_slice(&number.to_le_bytes());
    }
    for (kind, flags, at, bytes) in
        [(PT_LOAD, 5u32, CODE, CODE_BYTES), (PT_NOTE, 4, note_at, note.len() as u64)]
    {
        file.extend_from_slice(&kind.0.to_le_bytes());
        file.extend_from_slice(&flags.to_le_bytes());
        for number in [at, at, at, bytes, bytes, 4] {
            file.extend_from_slice(&number.to_le_bytes());
        }
    }
    file.extend_from_slice(&note);
    file.resize(CODE as usize, 0);
    file.resize(symbols_at as usize, 0x90);
    file.extend_from_slice(&symbols);
    file.extend_from_slice(&names);
    file.resize(sections_at as usize, 0);
    let sections = [
        (0, 0, 0, 0, 0, 0, 0),
        (SHT_PROGBITS.0, 6, CODE, CODE, CODE_BYTES, 0, 0),
        (table, 0, 0, symbols_at, symbols.len() as u64, 3, 24),
        (SHT_STRTAB.0, 0, 0, names_at, names.len() as u64, 0, 0),
    ];
    for (kind, flags, address, at, bytes, link, row_bytes) in sections {
        file.extend_from_slice(&0u32.to_le_bytes());
        file.extend_from_slice(&kind.to_le_bytes());
        for number in [flags, address, at, bytes] {
            file.extend_from_slice(&u64::to_le_bytes(number));
        }
        // The first symbol is local.
        file.extend_from_slice(&u32::to_le_bytes(link));
        file.extend_from_slice(&u32::from(row_bytes > 0).to_le_bytes());
        for number in [8, row_bytes] {
            file.extend_from_slice(&u64::to_le_bytes(number));
        }
    }
    file
}

/// A stripped library, with or without a debug file.
struct Installed {
    dir: PathBuf,
    module: Module,
}

impl Drop for Installed {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.dir).unwrap();
    }
}

impl Installed {
    fn with(test: &str, debug_build_id: Option<&[u8]>) -> Installed {
        let dir = std::env::temp_dir().join(format!("kvant-symbols-{test}-{}", std::process::id()));
        fs::create_dir_all(&dir).unwrap();
        let library = dir.join("libmade.so.6");
        let exported = ("made_export", CODE, 0x20);
        host::write_file(&library, &elf(&BUILD_ID, SHT_DYNSYM.0, &[exported])).unwrap();
        if let Some(build_id) = debug_build_id {
            fs::create_dir_all(dir.join(".build-id/ab")).unwrap();
            let local = ("__memmove_avx_unaligned_erms", CODE + 0x100, 0x80);
            let file = elf(build_id, SHT_SYMTAB.0, &[exported, local]);
            host::write_file(&dir.join(".build-id/ab/010203.debug"), &file).unwrap();
        }
        let module = Module {
            path: library.to_str().unwrap().to_owned(),
            start: 0x7000_0000,
            end: 0x7000_0000 + CODE_BYTES,
            file_offset_bytes: CODE,
            build_id: BUILD_ID.to_vec(),
        };
        Installed { dir, module }
    }

    /// The name of the function at an offset of the code.
    fn at(&self, offset: u64) -> String {
        let program = Program::open_with(&self.module, 0, &self.dir).unwrap();
        program.functions(Some(&self.module), self.module.start + offset).remove(0).name
    }
}

/// The name of addresses that no symbol covers.
const LIBRARY: &str = "libmade.so.6";

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
fn local_functions_of_a_library_are_named_by_its_debug_file() {
    let installed = Installed::with("apart", Some(&BUILD_ID));
    assert_eq!(installed.at(0x110), "__memmove_avx_unaligned_erms");
    assert_eq!(installed.at(0x10), "made_export");
    assert_eq!(installed.at(0x180), LIBRARY);
}

#[test]
fn without_a_debug_file_an_export_names_only_addresses_within_its_size() {
    let installed = Installed::with("alone", None);
    assert_eq!(installed.at(0x1f), "made_export");
    assert_eq!(installed.at(0x20), LIBRARY);
    assert_eq!(installed.at(0x110), LIBRARY);
}

#[test]
fn a_debug_file_of_another_build_is_not_used() {
    let installed = Installed::with("other", Some(&[0xab, 0x01, 0x02, 0x04]));
    assert_eq!(installed.at(0x110), LIBRARY);
    assert_eq!(installed.at(0x10), "made_export");
}
