//! Random histories, compared with a model of what must survive.

use super::*;
use crate::testing::entropy_seed;
use std::collections::{BTreeMap, BTreeSet};

/// The seed of this run. Set `KVANT_TEST_SEED` to replay a failure.
fn test_seed() -> u64 {
    let seed = match std::env::var("KVANT_TEST_SEED") {
        Ok(seed) => seed.parse().expect("KVANT_TEST_SEED must be a number"),
        Err(_) => entropy_seed(),
    };
    eprintln!("KVANT_TEST_SEED={seed}");
    seed
}

/// An independent model of what must survive: names and contents that were synced after their last
/// change.
#[derive(Default)]
struct Model {
    /// For every name ever used, the number of its file, if it exists.
    names: BTreeMap<String, Option<usize>>,
    /// Names changed since the last sync of their directory.
    unsynced_names: BTreeSet<String>,
    /// Files written since their last sync.
    unsynced_files: BTreeSet<usize>,
    file_count: usize,
}

impl Model {
    fn set(&mut self, name: &str, file: Option<usize>) {
        self.names.insert(name.to_owned(), file);
        self.unsynced_names.insert(name.to_owned());
    }

    /// Performs a random operation on `fs` and on the model.
    fn act(&mut self, fs: &FaultyFs, rng: &mut Rng) {
        let dir = ["/a", "/b"][rng.below(2) as usize];
        let name = format!("{dir}/{}", rng.below(4));
        let path = Path::new(&name);
        let file = self.names.get(&name).copied().flatten();
        match (rng.below(8), file) {
            (0, _) => {
                fs.sync_dir(Path::new(dir)).unwrap();
                self.unsynced_names.retain(|name| !name.starts_with(dir));
            }
            (_, None) => {
                fs.create(path).unwrap();
                self.set(&name, Some(self.file_count));
                self.file_count += 1;
            }
            (1, Some(_)) => {
                fs.remove_file(path).unwrap();
                self.set(&name, None);
            }
            (2, Some(file)) => {
                let to = format!("{dir}/{}", rng.below(4));
                fs.rename(path, Path::new(&to)).unwrap();
                if to != name {
                    self.set(&name, None);
                    self.set(&to, Some(file));
                }
            }
            (3 | 4, Some(file)) => {
                fs.open(path).unwrap().sync_data().unwrap();
                self.unsynced_files.remove(&file);
            }
            (5, Some(file)) => {
                fs.open_writable(path).unwrap().set_len(rng.below(2_000)).unwrap();
                self.unsynced_files.insert(file);
            }
            (_, Some(file)) => {
                let len = rng.below(2_000) as usize + 1;
                let bytes = rng.bytes(len);
                fs.open_writable(path).unwrap().write_all_at(&bytes, rng.below(2_000)).unwrap();
                self.unsynced_files.insert(file);
            }
        }
    }

    /// Checks a crash image of `fs`.
    fn check(&self, fs: &FaultyFs, image: &FaultyFs) {
        for (name, file) in &self.names {
            if self.unsynced_names.contains(name) {
                continue;
            }
            let found = contents(image, name);
            match file {
                None => assert_eq!(found, None, "{name} was durably removed"),
                Some(file) if self.unsynced_files.contains(file) => {
                    assert!(found.is_some(), "{name} is lost")
                }
                Some(_) => assert!(found == contents(fs, name), "{name} was synced and differs"),
            }
        }
    }
}

fn everything(fs: &FaultyFs) -> Vec<(PathBuf, Vec<u8>)> {
    let files = fs.files().into_iter();
    files.map(|(path, _)| (path.clone(), fs.contents(&path).unwrap())).collect()
}

#[test]
fn random_histories_keep_synced_data_and_replay() {
    let mut rng = Rng::new(test_seed());
    for _ in 0..100 {
        let mut fs = FaultyFs::new(rng.next_u64());
        fs.create_dir_all(Path::new("/a")).unwrap();
        fs.create_dir_all(Path::new("/b")).unwrap();
        fs.sync_all();
        let mut model = Model::default();
        for _ in 0..60 {
            model.act(&fs, &mut rng);
        }
        for _ in 0..20 {
            let seed = rng.next_u64();
            let image = fs.crash_image(seed, CrashStyle::Random);
            model.check(&fs, &image);
            assert!(everything(&image) == everything(&fs.crash_image(seed, CrashStyle::Random)));
        }
        model.check(&fs, &fs.crash_image(0, CrashStyle::DropUnsynced));
        let kept = fs.crash_image(0, CrashStyle::KeepAll);
        assert!(everything(&kept) == everything(&fs));
        assert_eq!(kept.used_bytes(), fs.used_bytes());
        fs = kept;
        assert!(everything(&fs.crash_image(0, CrashStyle::DropUnsynced)) == everything(&fs));
    }
}
