//! The files `~/.aws/config` and `~/.aws/credentials`: sections of settings, of which some have settings of their own.
//!
//! ```text
//! [profile lab]
//! region = eu-central-1
//! s3 =
//!     addressing_style = virtual
//! ```
//!
//! An indented line belongs to the setting before it. Crates for INI files read it as one of the section, which would
//! mix the endpoints of different services.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
};

/// The maximum size of a file, in bytes.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The reason why a file of settings cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigFileError {
    /// It cannot be read.
    #[error("cannot read {}", file.display())]
    Unreadable {
        /// The file.
        file: PathBuf,
        /// Reason.
        #[source]
        source: io::Error,
    },
    /// It is too large.
    #[error("{} has more than {MAX_FILE_BYTES} bytes", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// A line is neither a section, nor a setting, nor a comment.
    #[error("line {line} of {} is neither [section] nor name = value", file.display())]
    Malformed {
        /// The file.
        file: PathBuf,
        /// The number of the line, from 1.
        line: usize,
    },
}

/// The settings of a section by their names. A setting `a` of another setting `s3` has the name `s3.a`.
pub(crate) type Section = HashMap<String, String>;

/// The sections of a file by their names.
#[derive(Debug, Default)]
pub(crate) struct Sections(HashMap<String, Section>);

impl Sections {
    /// Reads a file; one that does not exist has no sections.
    pub(crate) fn read(file: &Path) -> Result<Self, ConfigFileError> {
        let unreadable = |source| ConfigFileError::Unreadable { file: file.to_owned(), source };
        let opened = match File::open(file) {
            Ok(opened) => opened,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(unreadable(error)),
        };
        let mut text = String::new();
        opened.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(unreadable)?;
        if text.len() as u64 > MAX_FILE_BYTES {
            return Err(ConfigFileError::TooLarge { file: file.to_owned() });
        }
        Self::parse(&text).map_err(|line| ConfigFileError::Malformed { file: file.to_owned(), line })
    }

    /// The settings of a section.
    pub(crate) fn get(&self, name: &str) -> Option<&Section> {
        self.0.get(name)
    }

    /// Parses the text of a file; fails with the number of a line.
    fn parse(text: &str) -> Result<Self, usize> {
        let mut sections: HashMap<String, Section> = HashMap::new();
        let mut section: Option<&mut Section> = None;
        // The setting that indented lines belong to.
        let mut outer: Option<String> = None;
        for (line, number) in text.lines().zip(1..) {
            let trimmed = line.trim();
            if trimmed.is_empty() || trimmed.starts_with(['#', ';']) {
                continue;
            }
            if let Some(name) = section_name(trimmed) {
                section = Some(sections.entry(name).or_default());
                outer = None;
                continue;
            }
            let section = section.as_mut().ok_or(number)?;
            let is_inner = line.starts_with([' ', '\t']);
            let Some((name, value)) = trimmed.split_once('=') else {
                // The continuation of a value.
                if is_inner && outer.is_some() {
                    continue;
                }
                return Err(number);
            };
            let name = name.trim().to_ascii_lowercase();
            let name = match &outer {
                Some(outer) if is_inner => format!("{outer}.{name}"),
                _ => {
                    outer = Some(name.clone());
                    name
                }
            };
            section.insert(name, value.trim().to_owned());
        }
        Ok(Self(sections))
    }
}

/// The name of the section that a line begins, with single spaces.
fn section_name(line: &str) -> Option<String> {
    let (name, rest) = line.strip_prefix('[')?.split_once(']')?;
    let rest = rest.trim_start();
    (rest.is_empty() || rest.starts_with(['#', ';'])).then(|| {
        let words = name.split_whitespace().map(|word| word.trim_matches(['"', '\'']));
        words.collect::<Vec<_>>().join(" ")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn setting<'s>(sections: &'s Sections, section: &str, name: &str) -> Option<&'s str> {
        sections.get(section)?.get(name).map(String::as_str)
    }

    #[test]
    fn indented_settings_belong_to_the_one_before() {
        let text = "# made by hand\n[default]\nregion=eu-west-1\n\n[ profile  'my lab' ] ; ours\nRegion = eu-central-1\n\
                    s3 =\n  endpoint_url = http://s3\n\taddressing_style=path\nec2 =\n  endpoint_url = http://ec2\n\
                    endpoint_url = https://all?a=b\n[default]\noutput = json\n";
        let sections = Sections::parse(text).unwrap();
        for (section, name, value) in [
            ("default", "region", Some("eu-west-1")),
            ("default", "output", Some("json")),
            ("profile my lab", "region", Some("eu-central-1")),
            ("profile my lab", "s3.endpoint_url", Some("http://s3")),
            ("profile my lab", "s3.addressing_style", Some("path")),
            ("profile my lab", "ec2.endpoint_url", Some("http://ec2")),
            ("profile my lab", "endpoint_url", Some("https://all?a=b")),
            ("my lab", "region", None),
        ] {
            assert_eq!(setting(&sections, section, name), value, "{section} {name}");
        }
    }

    #[test]
    fn lines_of_no_section_and_without_a_value_are_malformed() {
        assert_eq!(Sections::parse("\nregion = a\n").unwrap_err(), 2);
        assert_eq!(Sections::parse("[a]\n\nregion\n").unwrap_err(), 3);
        assert_eq!(Sections::parse("[a\n").unwrap_err(), 1);
        assert!(Sections::parse("[a]\nkey = long\n  and longer\n").is_ok());
    }

    #[test]
    fn absent_files_have_no_sections_and_large_or_binary_ones_are_errors() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("config");
        assert!(Sections::read(&file).unwrap().0.is_empty());
        std::fs::write(&file, "#".repeat(MAX_FILE_BYTES as usize + 1)).unwrap();
        assert!(matches!(Sections::read(&file), Err(ConfigFileError::TooLarge { .. })));
        std::fs::write(&file, b"[\xff]").unwrap();
        assert!(matches!(Sections::read(&file), Err(ConfigFileError::Unreadable { .. })));
        assert!(matches!(Sections::read(directory.path()), Err(ConfigFileError::Unreadable { .. })));
    }
}
