//! The figures of the reports that the seed plans repeat, typed from the reports.

use super::shipped::plans;
use std::collections::BTreeMap;

/// A line for each result: report and line of its command, workload, phase, server, and the figures
/// in requests per second and milliseconds.
const REPORTS: &str = "
    000:5   put               put-20k          -            achieved 19999.58 mean 0.828 p50 0.650 p90 1.12 p99 6.39 p99.9 15.77 max 20.512
    000:141 put               put-30k          -            achieved 29999.46 mean 2.332 p50 0.725 p90 5.31 p99 31.14 p99.9 72.45 max 88.000
    000:290 get               get-15k          -            achieved 14999.77 mean 0.795 p50 0.718 p90 1.41 p99 3.32 p99.9 5.44 max 7.46
    000:425 get               get-20k          -            achieved 19999.81 mean 3.717 p50 1.05 p90 10.45 p99 38.24 p99.9 62.49 max 69.824
    001:13  put               at-1k            -            achieved 999.99 mean 2.318 p50 1.21 p90 1.93 p99 37.82 p99.9 51.33 max 54.944
    001:135 get               at-1k            -            achieved 999.97 mean 1.197 p50 1.15 p90 1.65 p99 2.41 p99.9 13.23 max 33.600
    002:14  status            status           asynchronous achieved 9994.63 mean 1.253 p50 1.18 p90 2.05 p99 2.98 p99.9 8.53 max 13.800
    002:41  status-beside-put status           asynchronous achieved 9994.50 mean 1.201 p90 1.86 p99 4.76 p99.9 11.34 max 16.336
    002:68  status-beside-put status           blocking     achieved 9994.70 mean 1.214 p50 1.08 p90 1.76 p99 5.13 p99.9 17.47 max 28.864
    002:104 range             at-10k           asynchronous achieved 9755.20 mean 3043.818 p50 32.90 p90 10620 p99 12350 p99.9 12820 max 13295.616
    002:152 put               at-10k           asynchronous achieved 9790.71 mean 2.796 p50 1.81 p90 5.65 p99 15.57 p99.9 36.03 max 55.488
    002:187 put               at-10k           blocking     mean 6.80 p50 5.57 p90 13.27 p99 26.88 p99.9 47.33 max 68.99
    002:230 get               at-10k           asynchronous achieved 9754.44 mean 21.793 p50 19.10 p90 45.06 p99 64.42 p99.9 78.97 max 98.688
    002:283 get               at-10k           blocking     achieved 9760.24 mean 22.868 p50 18.78 p90 49.73 p99 81.92 p99.9 109.44 max 142.976
    002:336 delete            at-10k           asynchronous achieved 9791.19 mean 3.506 p50 1.88 p90 7.73 p99 21.63 p99.9 40.61 max 66.240
    002:379 delete            at-10k           blocking     achieved 9766.68 mean 8.974 p50 7.60 p90 18.66 p99 34.43 p99.9 51.10 max 63.840
    003:52  get-one           overload         -            achieved 36435.05 mean 21390 max 38990
    003:70  get-one           get-one-35k      -            achieved 34977.34 mean 256.16 max 2000
    003:85  get-one           max              -            rate_max 35000
    003:123 get-existing      overload         -            achieved 17984.96 mean 29650 max 49510
    003:141 get-existing      get-existing-17k -            achieved 16921.03 mean 188.40 max 3790
    003:156 get-existing      max              -            rate_max 17000
    003:189 get-absent        overload         -            achieved 31765.72 mean 25550 max 40890
    003:208 get-absent        get-absent-30k   -            achieved 29860.42 mean 15.41 max 1010
    003:208 get-absent        max              -            rate_max 30000
    003:267 get-mixed         overload         -            achieved 35970.11 mean 22220 max 38470
    003:286 get-mixed         get-mixed-34k    -            achieved 33834.26 mean 190.30 max 1230
    003:302 get-mixed         max              -            rate_max 34000
    003:346 put-fixed         overload         -            achieved 22075.99 mean 25330 max 47580
    003:365 put-fixed         put-fixed-22k    -            achieved 21735.20 mean 59.62 max 1140
    003:365 put-fixed         max              -            rate_max 22000
    003:415 put-random        overload         -            achieved 170.46 mean 33690 max 60000
    003:434 put-random        put-random-170   -            achieved 168.48 mean 339.93 max 2950
    003:431 put-random        max              -            rate_max 170
    004:33  put-empty         put-15k          LevelDB      achieved 14999.93 mean 10.15 max 489.47
    004:46  put               at-20k           LevelDB      achieved 19490.54 mean 1370 max 3060
    004:61  put               put-50k          LevelDB      achieved 19892.35 mean 39430 max 72000
    004:74  put               max              LevelDB      rate_max 20000
    004:75  get               at-20k           LevelDB      achieved 16962.88 mean 10260 max 18220
    004:89  get               max              LevelDB      rate_max 17000
";

/// Report, workload, phase, source and figure.
type Place = [String; 5];

fn of_reports() -> BTreeMap<Place, String> {
    let mut figures = BTreeMap::new();
    for line in REPORTS.lines().filter(|line| !line.trim().is_empty()) {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [place, workload, phase, server, of_result @ ..] = words.as_slice() else {
            panic!("{line}")
        };
        let report = place.split(':').next().unwrap();
        let source = match *server {
            "-" => format!("seed {report}"),
            "LevelDB" => format!("seed {report}, LevelDB"),
            server => format!("seed {report}, {server} server"),
        };
        for pair in of_result.chunks(2) {
            let plan = format!("seed-{report}");
            let place = [plan.as_str(), *workload, *phase, source.as_str(), pair[0]];
            let value: f64 = pair[1].parse().unwrap();
            let known = figures.insert(place.map(str::to_owned), value.to_string());
            assert_eq!(known, None, "{line}");
        }
    }
    figures
}

#[test]
fn seeds_have_all_figures_of_their_reports() {
    let mut of_plans = BTreeMap::new();
    for plan in plans().iter().filter(|plan| plan.name.starts_with("seed-")) {
        for row in &plan.known {
            let place = [&plan.name, &row.workload, &row.phase, &row.source, &row.figure];
            let known = of_plans.insert(place.map(Clone::clone), row.value.to_string());
            assert_eq!(known, None, "{row:?}");
        }
    }
    assert_eq!(of_plans, of_reports());
}

#[test]
fn known_figures_are_of_cases_of_their_plan() {
    for plan in plans() {
        let cases = plan.cases();
        for row in &plan.known {
            let is_of = |case: &crate::record::Case| {
                let is_phase = row.phase.is_empty() || case.phase == row.phase;
                case.workload == row.workload && is_phase
            };
            assert!(cases.iter().any(is_of), "{}: {row:?}", plan.name);
        }
    }
}
