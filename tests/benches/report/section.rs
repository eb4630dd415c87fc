//! One section of the report.

use std::{
    fmt::Write,
    panic::{AssertUnwindSafe, catch_unwind},
};

use zarrd_tests::benchmark::{comparison::Comparison, table::table};

use crate::servers::Peak;

/// The measurements for one question.
#[derive(Default)]
pub(crate) struct Section {
    pub(crate) name: &'static str,
    /// Comparisons by caption.
    pub(crate) blocks: Vec<(String, Vec<Comparison>)>,
    /// Sentences after the tables.
    pub(crate) notes: Vec<String>,
    /// The reason why there are no measurements.
    pub(crate) failed: Option<String>,
}

impl Section {
    /// A section that cannot be measured on this machine.
    pub(crate) fn not_measured(reason: &str) -> Self {
        Self { notes: vec![format!("Not measured: {reason}.")], ..Self::default() }
    }

    /// Adds comparisons under a caption, and reports progress.
    pub(crate) fn add(&mut self, caption: impl Into<String>, comparisons: Vec<Comparison>) {
        let caption = caption.into();
        eprintln!("\n{caption}\n{}", table(&comparisons));
        self.blocks.push((caption, comparisons));
    }

    /// Adds a note with the peak memory of processes.
    pub(crate) fn add_peaks(&mut self, peaks: impl IntoIterator<Item = Peak>) {
        let peaks: Vec<String> = peaks.into_iter().map(|peak| format!("{} {} MiB", peak.name, peak.mib)).collect();
        self.notes.push(format!("Peak memory of the processes: {}.", peaks.join(", ")));
    }

    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for (caption, comparisons) in &self.blocks {
            let _ = writeln!(text, "{caption}\n\n{}", table(comparisons));
        }
        for note in self.notes.iter().chain(&self.failed) {
            let _ = writeln!(text, "{note}\n");
        }
        text.trim_end().to_owned()
    }
}

/// Runs a section. If it panics, the other sections are still measured.
pub(crate) fn guarded(name: &'static str, run: impl FnOnce() -> Section) -> Section {
    match catch_unwind(AssertUnwindSafe(run)) {
        Ok(section) => Section { name, ..section },
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
            Section { name, failed: Some(format!("Failed: {text}")), ..Section::default() }
        }
    }
}
