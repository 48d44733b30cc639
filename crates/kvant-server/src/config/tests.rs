use super::*;

#[test]
fn defaults_are_usable_on_a_machine_of_any_size() {
    for cpu_count in [1, 1024, 1025, 1 << 20] {
        assert_eq!(ServerConfig::of_cpus(cpu_count).problems(), [""; 0], "{cpu_count}");
    }
}
