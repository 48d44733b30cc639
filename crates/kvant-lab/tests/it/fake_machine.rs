//! A `/proc` whose CPU account the test decides.

use kvant_env::host::procfs::ProcFs;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Ticks of `/proc` in a second.
const TICKS_PER_S: f64 = 100.0;
const CPU_COUNT: f64 = 2.0;
/// What the hypervisor takes while it steals: far more than is allowed.
const STOLEN_PART: f64 = 0.3;

/// A machine with two CPUs that do nothing.
pub(crate) struct FakeMachine {
    root: PathBuf,
    is_over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl FakeMachine {
    /// The hypervisor steals time while `is_stealing` holds.
    pub(crate) fn start(
        root: &Path,
        is_stealing: impl Fn() -> bool + Send + 'static,
    ) -> FakeMachine {
        let is_over = Arc::new(AtomicBool::new(false));
        let (over, dir) = (Arc::clone(&is_over), root.to_path_buf());
        fs::create_dir_all(root.join("self")).unwrap();
        fs::create_dir_all(root.join("pressure")).unwrap();
        let own = format!("7 (lab) R 1 7 7 0 -1 0 0 0 0 0 1 1 0 0 20 0 1 0 5 4096 {} 1\n", 9);
        fs::write(root.join("self/stat"), own).unwrap();
        let pressure = "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n";
        fs::write(root.join("pressure/cpu"), pressure).unwrap();
        write_stat(root, 0.0, 0.0);
        let thread = std::thread::spawn(move || {
            let (mut idle_s, mut stolen_s) = (0.0, 0.0);
            let mut last = Instant::now();
            while !over.load(Ordering::SeqCst) {
                std::thread::sleep(Duration::from_millis(10));
                let elapsed_s = last.elapsed().as_secs_f64() * CPU_COUNT;
                last = Instant::now();
                let stolen_part = if is_stealing() { STOLEN_PART } else { 0.0 };
                stolen_s += elapsed_s * stolen_part;
                idle_s += elapsed_s * (1.0 - stolen_part);
                write_stat(&dir, idle_s, stolen_s);
            }
        });
        FakeMachine { root: root.to_path_buf(), is_over, thread: Some(thread) }
    }

    pub(crate) fn proc(&self) -> ProcFs {
        ProcFs::at(&self.root)
    }
}

impl Drop for FakeMachine {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

/// Readers see the old or the new file.
fn write_stat(root: &Path, idle_s: f64, stolen_s: f64) {
    let (idle, stolen) = ((idle_s * TICKS_PER_S) as u64, (stolen_s * TICKS_PER_S) as u64);
    let text = format!(
        "cpu  0 0 0 {idle} 0 0 0 {stolen} 0 0\ncpu0 0 0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\n"
    );
    let new = root.join("stat.new");
    fs::write(&new, text).unwrap();
    fs::rename(&new, root.join("stat")).unwrap();
}
