//! The code blocks of a Markdown text, and the pages that have some. The build script uses this module too.

use std::{
    fs, io,
    path::{Path, PathBuf},
};

/// A fenced code block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Block {
    /// The info string of the opening fence, such as `sh`.
    pub language: String,
    /// The line number of the opening fence, from 1.
    pub line: usize,
    /// The content.
    pub text: String,
    /// The `text` block that follows, if any: the expected output.
    pub prints: Option<String>,
    /// The marker `<!-- snippets: … -->` above it, if any: what it is run on.
    pub marker: Option<Marker>,
    /// The reason in the comment `<!-- not run: … -->` or the paragraph `*Not run here: …*` just before the block, if any. The
    /// command after `<!-- tests -->` runs the tests.
    pub not_run: Option<String>,
}

/// A marker of the snippets that follow, up to the next one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Its line number, from 1.
    pub line: usize,
    /// Its text, such as `store`.
    pub text: String,
}

/// A page of the documentation.
#[derive(Clone, Debug)]
pub struct Page {
    /// The path in the workspace, such as `docs/start/curl.md`.
    pub name: String,
    /// The content.
    pub text: String,
}

impl Block {
    /// True if a test runs it.
    pub fn is_run(&self) -> bool {
        self.marker.is_some() && self.not_run.is_none()
    }
}

/// `README.md` and all pages in `docs`, by name.
///
/// # Errors
///
/// If a file or directory cannot be read.
pub fn pages(workspace: &Path) -> io::Result<Vec<Page>> {
    let mut found = vec![workspace.join("README.md")];
    let mut directories = vec![workspace.join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory)? {
            let path = entry?.path();
            match path.is_dir() {
                true => directories.push(path),
                false if path.extension().is_some_and(|extension| extension == "md") => found.push(path),
                false => {}
            }
        }
    }
    found.sort();
    let page = |path: PathBuf| {
        let name = path.strip_prefix(workspace).unwrap_or(&path).display().to_string();
        Ok(Page { name, text: fs::read_to_string(path)? })
    };
    found.into_iter().map(page).collect()
}

/// The blocks of a page in order. A `text` block immediately after another block belongs to it.
pub fn blocks(markdown: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    let mut marker = None;
    let mut not_run = None;
    let mut follows = false;
    for (number, line) in markdown.lines().enumerate() {
        match &mut open {
            Some(_) if line.trim_end() == "```" => {
                let Some(block) = open.take() else { continue };
                match found.last_mut() {
                    Some(code) if follows && block.language == "text" => code.prints = Some(block.text),
                    _ => found.push(block),
                }
                follows = true;
            }
            Some(block) => {
                block.text.push_str(line);
                block.text.push('\n');
            }
            None => {
                if let Some(language) = line.strip_prefix("```") {
                    open = Some(Block {
                        language: language.trim().to_owned(),
                        line: number + 1,
                        text: String::new(),
                        prints: None,
                        marker: marker.clone(),
                        not_run: not_run.take(),
                    });
                } else if let Some(text) = between(line, "<!-- snippets: ", " -->") {
                    marker = Some(Marker { line: number + 1, text });
                } else if !line.trim().is_empty() {
                    let comment = match line.trim() {
                        "<!-- tests -->" => Some("it is the command that runs the tests".to_owned()),
                        _ => between(line, "<!-- not run: ", " -->"),
                    };
                    not_run = comment.or_else(|| between(line, "*Not run here: ", "*"));
                    follows = false;
                }
            }
        }
    }
    found
}

/// The name of the module with the Rust snippet `number` of a page, such as `start_rust_1`.
pub fn module(page: &str, number: usize) -> String {
    let name = page.trim_start_matches("docs/").trim_end_matches(".md").to_lowercase();
    format!("{}_{number}", name.replace(['/', '-'], "_"))
}

fn between(line: &str, opening: &str, closing: &str) -> Option<String> {
    Some(line.trim().strip_prefix(opening)?.strip_suffix(closing)?.to_owned())
}
