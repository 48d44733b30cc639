use super::*;
use kvant_env::testing::MockClock;
use std::fs;
use std::path::{Path, PathBuf};

/// A `/proc` with one process of a subject.
struct FakeProc(PathBuf);

impl FakeProc {
    fn new(name: &str) -> FakeProc {
        let dir =
            std::env::temp_dir().join(format!("kvant-lab-watch-{}-{name}", std::process::id()));
        fs::create_dir_all(dir.join("50/task")).unwrap();
        FakeProc(dir)
    }

    fn write(&self, file: impl AsRef<Path>, text: &str) {
        let path = self.0.join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn set(&self, cpu_ticks: u64, threads: &[(u32, u64)]) {
        let stat = format!("50 (a) S 1 50 1 0 -1 0 0 0 0 0 {cpu_ticks} 0 0 0 20 0 1 0 5 4096 7 1");
        self.write("50/stat", &stat);
        fs::remove_dir_all(self.0.join("50/task")).unwrap();
        for (thread, switches) in threads {
            let status = format!(
                "voluntary_ctxt_switches:\t{switches}\nnonvoluntary_ctxt_switches:\t{switches}\n"
            );
            self.write(format!("50/task/{thread}/status"), &status);
        }
    }
}

impl Drop for FakeProc {
    fn drop(&mut self) {
        fs::remove_dir_all(&self.0).unwrap();
    }
}

fn sampler(fake: &FakeProc, clock: &Arc<MockClock>) -> Sampler {
    let proc = ProcFs::at(&fake.0);
    Sampler::new(proc, Arc::clone(clock) as Arc<dyn Clock>, Watched::Group(50), Vec::new())
}

#[test]
fn counters_do_not_decrease_when_threads_and_processes_end() {
    let (fake, clock) = (FakeProc::new("counters"), Arc::new(MockClock::new(0)));
    let mut sampler = sampler(&fake, &clock);
    fake.set(10, &[(50, 5), (51, 7)]);
    sampler.sample();
    clock.advance(PERIOD);
    fake.set(30, &[(50, 6)]);
    sampler.sample();
    fs::remove_file(fake.0.join("50/stat")).unwrap();
    let (watch, pause) = sampler.finish();
    assert_eq!(pause, None);
    let cpu: Vec<_> = watch.samples.iter().map(|sample| sample.server_cpu_ns.unwrap()).collect();
    assert_eq!((cpu[1] / cpu[0], cpu[2]), (3, cpu[1]));
    let switches: Vec<_> =
        watch.samples.iter().map(|sample| sample.server_voluntary_switches).collect();
    assert_eq!(switches[..2], [Some(12), Some(13)]);
}

#[test]
fn a_late_sample_is_a_pause() {
    let (fake, clock) = (FakeProc::new("pause"), Arc::new(MockClock::new(0)));
    fake.set(1, &[(50, 1)]);
    let pause_after = |lengths: &[Duration]| {
        let mut sampler = sampler(&fake, &clock);
        sampler.sample();
        for length in lengths {
            clock.advance(*length);
            sampler.sample();
        }
        sampler.finish().1
    };
    assert_eq!(pause_after(&[PERIOD, PERIOD + PAUSE_MIN / 2]), None);
    let pause = pause_after(&[PERIOD, PERIOD + PAUSE_MIN, PERIOD]).unwrap();
    assert_eq!(pause, "the generator stood still for 150 ms");
}

#[test]
fn what_others_took_is_the_rest() {
    let sample = |at_ns, all: u64, stolen: u64| WatchSample {
        at_ns,
        server_cpu_ns: Some(at_ns / 4),
        generator_cpu_ns: at_ns / 8,
        all_cpu_ns: Some(all),
        stolen_ns: Some(stolen),
        pressure_ns: None,
        ..WatchSample::default()
    };
    let second = 1_000_000_000;
    let samples = [sample(0, 0, 0), sample(second, second, second / 10)];
    let taken = taken(&samples, 2).unwrap();
    assert!((taken.others_part - 0.3125).abs() < 1e-9, "{taken:?}");
    assert!((taken.stolen_part - 0.05).abs() < 1e-9, "{taken:?}");
    assert_eq!(super::taken(&samples[..1], 2), None, "no time has passed");
    // Nodes of the subject's cluster are not others.
    let with_nodes =
        samples.map(|sample| WatchSample { nodes_cpu_ns: Some(sample.at_ns / 2), ..sample });
    let taken = super::taken(&with_nodes, 2).unwrap();
    assert!((taken.others_part - 0.0625).abs() < 1e-9, "{taken:?}");
}
