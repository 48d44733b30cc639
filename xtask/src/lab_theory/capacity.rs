//! The breaking point of a server that can do exactly 5,000 requests per second.

use super::setting::{Setting, compare, print_without_figure};
use serde_json::Value;

const CAPACITY_PER_S: f64 = 5_000.0;
const SERVICE_US: u64 = 200;
const TOLERANCE: f64 = 0.03;
const SEARCHES: u64 = 5;

/// Five searches.
pub(super) fn check(setting: &Setting) -> Result<bool, String> {
    let plan = format!(
        "title = \"A capacity of {CAPACITY_PER_S} requests per second\"\nrepeats = {SEARCHES}\n\
         connections = 64\nobjectives = [\"p99<100ms\"]\n{}\
         [workload.all]\nmethod = \"GET\"\npath = \"/\"\n\
         [phase]\nmax = {{ find-max = true, duration = \"1s\", warmup = \"300ms\" }}\n",
        setting.subject("capacity", ("constant", SERVICE_US), "all", false)
    );
    let report = setting.run("capacity", &plan)?;
    let Some(found) = report["maxima"].as_array().and_then(|maxima| maxima.first()) else {
        print_without_figure("capacity", &report, &Value::from(0));
        return Ok(false);
    };
    let rate = &found["rate_per_s"];
    let mut is_met = true;
    for which in ["min", "median", "max"] {
        let value = rate[which].as_f64().ok_or("the report has no breaking point")?;
        let what = format!("breaking point, {which} of {}", rate["count"]);
        is_met &= compare(&what, value, CAPACITY_PER_S, TOLERANCE, "/s");
    }
    if rate["count"].as_u64() != Some(SEARCHES) {
        println!("breaking point: FAILED, {} of {SEARCHES} searches count", rate["count"]);
        is_met = false;
    }
    Ok(is_met)
}
