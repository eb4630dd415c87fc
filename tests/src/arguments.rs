//! The command-line arguments of the long tests: pairs of a name and a value.

use std::{env, fmt::Display, str::FromStr};

/// An argument, such as `--seed 5`.
pub struct Argument {
    /// The name, such as `--seed`.
    pub name: String,
    /// The value.
    pub value: String,
}

/// The arguments of the long test that this process runs: those after its name.
///
/// # Panics
///
/// If the last name has no value.
pub fn arguments() -> impl Iterator<Item = Argument> {
    pairs(env::args().skip(2))
}

/// The arguments in `texts`, which are names and values in turn.
///
/// # Panics
///
/// If the last name has no value.
pub fn pairs(mut texts: impl Iterator<Item = String>) -> impl Iterator<Item = Argument> {
    std::iter::from_fn(move || {
        let name = texts.next()?;
        let value = texts.next().unwrap_or_else(|| panic!("{name} takes a value"));
        Some(Argument { name, value })
    })
}

impl Argument {
    /// The value as a number.
    ///
    /// # Panics
    ///
    /// If it is not a number of this type.
    pub fn number<T: FromStr>(&self) -> T {
        self.value.parse().unwrap_or_else(|_| panic!("{} takes a number, not {}", self.name, self.value))
    }

    /// The comma-separated values.
    ///
    /// # Panics
    ///
    /// If one of them cannot be parsed.
    pub fn list<T: FromStr<Err: Display>>(&self) -> Vec<T> {
        let parse = |text: &str| text.parse().unwrap_or_else(|error| panic!("{} {text}: {error}", self.name));
        self.value.split(',').map(parse).collect()
    }

    /// Rejects the argument.
    ///
    /// # Panics
    ///
    /// Always.
    pub fn reject(&self) -> ! {
        panic!("unknown argument {} {}", self.name, self.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(texts: &[&str]) -> Vec<(String, String)> {
        let texts = texts.iter().map(|&text| text.to_owned()).collect::<Vec<_>>();
        pairs(texts.into_iter()).map(|argument| (argument.name, argument.value)).collect()
    }

    #[test]
    fn names_and_values_alternate() {
        assert_eq!(
            parsed(&["--seed", "5", "--dir", "/x"]),
            [("--seed", "5"), ("--dir", "/x")].map(|(a, b)| (a.into(), b.into()))
        );
        assert!(parsed(&[]).is_empty());
    }

    #[test]
    #[should_panic(expected = "--dir takes a value")]
    fn name_without_a_value_is_rejected() {
        parsed(&["--seed", "5", "--dir"]);
    }

    #[test]
    fn values_are_parsed() {
        let argument = Argument { name: "--n".to_owned(), value: "1,2".to_owned() };
        assert_eq!(argument.list::<u32>(), [1, 2]);
        assert_eq!(Argument { value: "7".to_owned(), ..argument }.number::<u64>(), 7);
    }
}
