//! The report as one self-contained HTML page.
//!
//! Tables and texts are written here, in both languages, so that they need no script; the scripts
//! add charts, the time line and flame graphs, from data that are embedded compressed.
//!
//! Invariants:
//! 1. The page loads nothing: everything is inside, and its content security policy forbids it.
//! 2. It stays below [`PAGE_BYTES_MAX`]: what does not fit is left out, the least interesting
//!    first, and the page says so.
//! 3. The page's own words are in `words.json` alone; sentences about the run come from the report.

mod embed;
mod explanation;
mod figures;
mod interventions;
mod layers;
mod lines;
mod markup;
mod numbers;
mod overview;
mod sides;
mod sweeps;
mod texts;
mod what_if;

pub use explanation::explanation;
pub use lines::comparison_json;

use crate::model::Report;
use kvant_profiler::recording::Recording;
use kvant_profiler::render::front;
use markup::Words;

/// Bound of the page's size.
pub const PAGE_BYTES_MAX: usize = 2_900_000;

kvant_base::named_enum! {
    /// The language that a page shows first.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
    pub enum Language {
        /// English.
        #[default]
        English = "en",
        /// Russian.
        Russian = "ru",
    }
}

const TEMPLATE: &str = include_str!("page.html");
const STYLE: &str = include_str!("style.css");
const WORDS: &str = include_str!("words.json");
const UPLOT_STYLE: &str = include_str!("uplot/uPlot.min.css");
const UPLOT_LICENSE: &str = include_str!("uplot/LICENSE");
const UPLOT: &str = include_str!("uplot/uPlot.iife.min.js");

/// The page's own scripts. A script imports only from those before it.
const SCRIPTS: &[&str] = &[
    include_str!("say.js"),
    include_str!("chart.js"),
    include_str!("curves.js"),
    include_str!("spectra.js"),
    include_str!("timemap.js"),
    include_str!("ranges.js"),
    include_str!("flames.js"),
    include_str!("times.js"),
    include_str!("main.js"),
];

/// The page of a report. `recordings` opens a file that a time line names.
pub fn html(
    report: &Report,
    recordings: &dyn Fn(&str) -> Option<Recording>,
    language: Language,
) -> String {
    let words = Words::new(WORDS);
    let content = [
        overview::verdict(report, &words),
        sides::sides(report, &words),
        interventions::interventions(report, &words),
        what_if::what_if(report, &words),
        overview::environment(report, &words),
        overview::curves(report, &words),
        overview::spectra(report, &words),
        figures::figures(report, &words),
        figures::comparisons(report, &words),
        sweeps::sweeps(report, &words),
        figures::known(report, &words),
        texts::time_line(report, &words),
        layers::layers(report, &words),
        texts::observations(report, &words),
        texts::wrk2(report, &words),
        texts::files(report, &words),
    ]
    .concat();
    let script =
        format!("/*\n{UPLOT_LICENSE}*/\n{UPLOT}{}", front::concatenate(&[front::SCRIPTS, SCRIPTS]));
    let style = [front::STYLE, UPLOT_STYLE, STYLE].concat();
    let fixed_bytes = TEMPLATE.len() + content.len() + script.len() + style.len() + WORDS.len();
    let data = embed::data(report, recordings, PAGE_BYTES_MAX.saturating_sub(fixed_bytes));
    let title = markup::escape(&report.run.plan);
    front::fill(
        TEMPLATE,
        &[
            ("LANGUAGE", language.name()),
            ("TITLE", &title),
            ("/*STYLE*/", &style),
            ("<!--BAR-->", &overview::bar(report, &words)),
            ("<!--CONTENT-->", &content),
            ("<!--FOOTER-->", &words.say("footer")),
            ("<!--WORDS-->", &WORDS.replace('<', "\\u003c")),
            ("<!--DATA-->", &data),
            ("/*SCRIPT*/", &script),
        ],
    )
}
