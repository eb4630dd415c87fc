//! The code blocks of a Markdown text. The build script uses this module too.

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
}

/// The blocks of the section with the heading `## name`, in order. A `text` block immediately after another block
/// belongs to it.
pub fn blocks(markdown: &str, name: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut open: Option<Block> = None;
    let (mut inside, mut follows) = (false, false);
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
                if let Some(heading) = line.strip_prefix("## ") {
                    inside = heading.trim() == name;
                } else if let Some(language) = line.strip_prefix("```").filter(|_| inside) {
                    let language = language.trim().to_owned();
                    open = Some(Block { language, line: number + 1, text: String::new(), prints: None });
                    continue;
                }
                follows &= line.trim().is_empty();
            }
        }
    }
    found
}
