//! The paragraphs, headings and links of a Markdown text.

use std::{collections::HashMap, fs, path::Path};

/// A paragraph, an item of a list, or a cell of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Paragraph {
    /// The line number at which it begins, from 1.
    pub line: usize,
    /// The number of words.
    pub words: usize,
}

/// A link or a picture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its line number, from 1.
    pub line: usize,
    /// What it leads to, as it is written.
    pub target: String,
}

/// The lines outside of code blocks and comments, with their numbers from 1.
fn prose(markdown: &str) -> impl Iterator<Item = (usize, &str)> {
    let (mut is_code, mut is_comment) = (false, false);
    markdown.lines().enumerate().map(move |(number, line)| {
        let trimmed = line.trim();
        let is_fence = trimmed.starts_with("```");
        let was_code = is_code;
        is_code ^= is_fence;
        if is_fence || was_code {
            // A fence ends a paragraph.
            return (number + 1, "");
        }
        let begins = trimmed.starts_with("<!--");
        let is_left_out = is_comment || begins;
        is_comment = is_left_out && !trimmed.ends_with("-->");
        (number + 1, if is_left_out { "" } else { line })
    })
}

/// The paragraphs of a text. Headings are none.
pub fn paragraphs(markdown: &str) -> Vec<Paragraph> {
    let mut found: Vec<Paragraph> = Vec::new();
    let mut is_open = false;
    for (line, text) in prose(markdown) {
        let trimmed = text.trim();
        let (marker, _) = trimmed.split_once(' ').unwrap_or((trimmed, ""));
        let number = marker.strip_suffix('.').is_some_and(|digits| digits.parse::<u32>().is_ok());
        let begins_item = ["-", "*", "+"].contains(&marker) || number;
        let words = trimmed.split_whitespace().count();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            is_open = false;
        } else if trimmed.starts_with('|') {
            is_open = false;
            let cells = trimmed.split('|').map(|cell| cell.split_whitespace().count());
            found.push(Paragraph { line, words: cells.max().unwrap_or_default() });
        } else {
            match found.last_mut().filter(|_| is_open && !begins_item) {
                Some(paragraph) => paragraph.words += words,
                None => found.push(Paragraph { line, words }),
            }
            is_open = true;
        }
    }
    found
}

/// The links of a text, without those in code.
pub fn links(markdown: &str) -> Vec<Link> {
    let mut found = Vec::new();
    for (line, text) in prose(markdown) {
        // Every second part is code; a link's text may have some, so that parts are joined by something else.
        let outside: String =
            text.split('`').enumerate().map(|(at, part)| if at % 2 == 0 { part } else { "code" }).collect();
        for after in outside.split("](").skip(1) {
            if let Some((target, _)) = after.split_once(')') {
                found.push(Link { line, target: target.to_owned() });
            }
        }
    }
    found
}

/// The anchors of the headings of a text, as GitHub makes them.
pub fn anchors(markdown: &str) -> Vec<String> {
    let mut seen: HashMap<String, usize> = HashMap::new();
    let headings = prose(markdown).filter_map(|(_, line)| {
        let text = line.trim_start_matches('#');
        (line.starts_with('#') && text.starts_with(' ')).then(|| slug(text))
    });
    headings
        .map(|slug| {
            let count = seen.entry(slug.clone()).and_modify(|count| *count += 1).or_default();
            if *count == 0 { slug } else { format!("{slug}-{count}") }
        })
        .collect()
}

fn slug(heading: &str) -> String {
    let lower = heading.trim().to_lowercase();
    let retained = lower.chars().filter(|sign| sign.is_alphanumeric() || [' ', '-', '_'].contains(sign));
    retained.map(|sign| if sign == ' ' { '-' } else { sign }).collect()
}

/// The relative links of a file in the workspace that lead nowhere, each as `file:line: target`.
pub fn broken_links(workspace: &Path, name: &str) -> Vec<String> {
    let path = workspace.join(name);
    let text = fs::read_to_string(&path).unwrap_or_default();
    let leads_nowhere = |link: &Link| {
        if link.target.contains("://") || link.target.starts_with("mailto:") {
            return false;
        }
        let (file, anchor) = link.target.split_once('#').unwrap_or((&link.target, ""));
        let file = match file {
            "" => path.clone(),
            file => path.parent().unwrap_or(workspace).join(file),
        };
        if !file.exists() {
            return true;
        }
        let is_markdown = file.extension().is_some_and(|extension| extension == "md");
        !anchor.is_empty()
            && is_markdown
            && !anchors(&fs::read_to_string(&file).unwrap_or_default()).iter().any(|known| known == anchor)
    };
    links(&text)
        .into_iter()
        .filter(leads_nowhere)
        .map(|link| format!("{name}:{}: {}", link.line, link.target))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paragraphs_end_at_blank_lines_items_rows_and_code() {
        let text = "# A heading\none two\nthree\n\n- four\n  five\n- six\n\n| a b | c |\n<!-- x\ny -->\n```sh\nno words\n```\n1. seven eight\n";
        let found: Vec<_> = paragraphs(text).iter().map(|found| (found.line, found.words)).collect();
        // A marker of an item is counted as a word.
        assert_eq!(found, [(2, 3), (5, 3), (7, 2), (9, 2), (15, 3)]);
    }

    #[test]
    fn links_are_found_outside_of_code() {
        let text = "[a](b.md#c) and ![p](q.png) `[no](x)` [`code`](d)\n```\n[no](y)\n```\n";
        let found: Vec<_> = links(text).into_iter().map(|link| link.target).collect();
        assert_eq!(found, ["b.md#c", "q.png", "d"]);
    }

    #[test]
    fn anchors_are_those_of_github() {
        let text = "# Is `zarrd` fast?\n## TLS, and proxies\n## Again\n## Again\n```sh\n# no\n```\n";
        assert_eq!(anchors(text), ["is-zarrd-fast", "tls-and-proxies", "again", "again-1"]);
    }

    #[test]
    fn broken_links_are_named() {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("a.md"), "# A\n[x](b.md#b) [y](b.md#c) [z](c.md) [w](#a) [v](https://x.org/#q)\n")
            .unwrap();
        fs::write(dir.path().join("b.md"), "# B\n").unwrap();
        assert_eq!(broken_links(dir.path(), "a.md"), ["a.md:2: b.md#c", "a.md:2: c.md"]);
    }
}
