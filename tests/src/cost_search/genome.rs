//! Requests encoded as genes: each gene is a number that selects one option of one part, so that every genome yields a
//! request.

use std::{fmt, str::FromStr};

use rand::{Rng, RngExt};

/// The operation under search.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// The value of a key, or a range of it.
    StoreGet,
    /// Metadata of a key.
    StoreHead,
    /// Setting a key.
    StorePut,
    /// Erasing a key.
    StoreDelete,
    /// Listing a prefix, in all formats.
    StoreList,
    /// Erasing a prefix.
    StoreErase,
    /// Elements selected by a query.
    ArrayGet,
    /// Metadata of a selection.
    ArrayHead,
    /// Elements selected by a body.
    ArrayRead,
    /// Writing a region.
    ArrayPut,
    /// Appending.
    ArrayAppend,
    /// A tree.
    NodeGet,
    /// Metadata of a tree.
    NodeHead,
    /// Declaring a tree.
    NodePut,
    /// Changing a node.
    NodePatch,
    /// Erasing a tree.
    NodeDelete,
    /// Comparing a tree with a body.
    NodeValidate,
    /// Converting a tree.
    NodeConvert,
    /// The JSON Schemas.
    Schema,
    /// Operational endpoints.
    Service,
    /// A reduction.
    ArrayReduce,
    /// Statistics.
    ArrayStats,
    /// Labels of a coordinate, and selections by them.
    ArrayLabels,
    /// A picture, or its thresholds.
    ArrayPicture,
    /// The chunks that a selection touches.
    ArrayChunks,
}

/// The work that the server of an operation allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// The default.
    Default,
    /// 2 Gi units of about a nanosecond. A computation may read all of an array, however large that is, so it is
    /// limited by `--max-work` alone; what passes this limit takes 2 s if its work is counted right.
    Small,
}

/// A part of a request selected by one gene.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gene {
    /// The fixture, or the form of a document.
    Kind,
    /// The size of a body or of a fixture.
    Size,
    /// The number of entries of a selection, or of nodes.
    Count,
    /// The distance and order of the entries.
    Stride,
    /// The form of a selection.
    Select,
    /// The format of the response or the body.
    Format,
    /// The content coding, or the media type.
    Coding,
    /// The nesting depth, or the width.
    Depth,
    /// The dialect, or the requested model.
    Dialect,
    /// Parameters without a value.
    Flags,
    /// Preconditions.
    Conditions,
    /// The length of names.
    Name,
    /// The data type.
    DataType,
    /// The number of dimensions.
    Rank,
    /// The bytes of a chunk.
    Chunk,
    /// The spread of a chunk's elements over the dimensions.
    Spread,
    /// The number of chunks.
    Chunks,
    /// The elements that are stored.
    Data,
    /// The first array-to-array codec.
    FilterA,
    /// The second array-to-array codec.
    FilterB,
    /// The number of repetitions of both.
    Repeat,
    /// The nesting depth of shards.
    Shards,
    /// The first bytes-to-bytes codec.
    PackA,
    /// The second bytes-to-bytes codec.
    PackB,
}

/// An operation and the genes that select its parts.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Genome {
    /// The operation.
    pub operation: Operation,
    genes: [u8; Gene::COUNT],
}

/// Errors of parsing a [`Genome`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenomeError {
    /// Unknown operation.
    #[error("{0} is none of the operations")]
    Operation(String),
    /// The genes are not the required number of hexadecimal digits.
    #[error("{0} is not {n} hexadecimal digits", n = 2 * Gene::COUNT)]
    Genes(String),
}

impl Operation {
    /// All operations.
    pub const ALL: [Self; 25] = [
        Self::StoreGet,
        Self::StoreHead,
        Self::StorePut,
        Self::StoreDelete,
        Self::StoreList,
        Self::StoreErase,
        Self::ArrayGet,
        Self::ArrayHead,
        Self::ArrayRead,
        Self::ArrayPut,
        Self::ArrayAppend,
        Self::NodeGet,
        Self::NodeHead,
        Self::NodePut,
        Self::NodePatch,
        Self::NodeDelete,
        Self::NodeValidate,
        Self::NodeConvert,
        Self::Schema,
        Self::Service,
        Self::ArrayReduce,
        Self::ArrayStats,
        Self::ArrayLabels,
        Self::ArrayPicture,
        Self::ArrayChunks,
    ];

    /// The name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::StoreGet => "store-get",
            Self::StoreHead => "store-head",
            Self::StorePut => "store-put",
            Self::StoreDelete => "store-delete",
            Self::StoreList => "store-list",
            Self::StoreErase => "store-erase",
            Self::ArrayGet => "array-get",
            Self::ArrayHead => "array-head",
            Self::ArrayRead => "array-read",
            Self::ArrayPut => "array-put",
            Self::ArrayAppend => "array-append",
            Self::NodeGet => "node-get",
            Self::NodeHead => "node-head",
            Self::NodePut => "node-put",
            Self::NodePatch => "node-patch",
            Self::NodeDelete => "node-delete",
            Self::NodeValidate => "node-validate",
            Self::NodeConvert => "node-convert",
            Self::Schema => "schema",
            Self::Service => "service",
            Self::ArrayReduce => "array-reduce",
            Self::ArrayStats => "array-stats",
            Self::ArrayLabels => "array-labels",
            Self::ArrayPicture => "array-picture",
            Self::ArrayChunks => "array-chunks",
        }
    }

    /// The work that its server allows.
    pub const fn effort(self) -> Effort {
        if self.computes() { Effort::Small } else { Effort::Default }
    }

    /// True if it computes with elements or labels.
    pub(super) const fn computes(self) -> bool {
        matches!(
            self,
            Self::ArrayReduce | Self::ArrayStats | Self::ArrayPicture | Self::ArrayLabels | Self::ArrayChunks
        )
    }
}

impl Effort {
    /// The name of its store.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Small => "small",
        }
    }

    /// The value of `--max-work`.
    pub(super) const fn max_work(self) -> Option<&'static str> {
        match self {
            Self::Default => None,
            Self::Small => Some("2GiB"),
        }
    }
}

impl Gene {
    /// The number of genes.
    pub const COUNT: usize = Self::PackB as usize + 1;
}

impl Genome {
    /// A random genome.
    pub fn random(operation: Operation, random: &mut impl Rng) -> Self {
        Self { operation, genes: random.random() }
    }

    /// A genome that selects the first option of every part.
    pub fn plain(operation: Operation) -> Self {
        Self { operation, genes: [0; Gene::COUNT] }
    }

    /// The genome with one gene set.
    #[must_use]
    pub fn with(mut self, gene: Gene, choice: u8) -> Self {
        self.genes[gene as usize] = choice;
        self
    }

    /// The option that a gene selects.
    ///
    /// # Panics
    ///
    /// If there are no options.
    pub fn pick<T: Copy>(&self, gene: Gene, of: &[T]) -> T {
        of[usize::from(self.genes[gene as usize]) % of.len()]
    }

    /// True if a bit of a gene is set.
    pub fn has(&self, gene: Gene, bit: u8) -> bool {
        self.genes[gene as usize] >> (bit % 8) & 1 == 1
    }

    /// A copy with one to three genes replaced or moved by one.
    #[must_use]
    pub fn mutated(&self, random: &mut impl Rng) -> Self {
        let mut next = self.clone();
        for _ in 0..random.random_range(1..=3) {
            let gene = &mut next.genes[random.random_range(0..Gene::COUNT)];
            *gene = match random.random_range(0..4) {
                0 => gene.wrapping_add(1),
                1 => gene.wrapping_sub(1),
                _ => random.random(),
            };
        }
        next
    }

    /// A copy with each gene taken from either parent.
    #[must_use]
    pub fn crossed(&self, other: &Self, random: &mut impl Rng) -> Self {
        let mut next = self.clone();
        for (gene, theirs) in next.genes.iter_mut().zip(other.genes) {
            if random.random() {
                *gene = theirs;
            }
        }
        next
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Operation {
    type Err = GenomeError;

    fn from_str(text: &str) -> Result<Self, GenomeError> {
        let named = |operation: &Self| operation.name() == text;
        Self::ALL.into_iter().find(named).ok_or_else(|| GenomeError::Operation(text.to_owned()))
    }
}

impl fmt::Display for Genome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.operation)?;
        self.genes.iter().try_for_each(|gene| write!(f, "{gene:02x}"))
    }
}

impl FromStr for Genome {
    type Err = GenomeError;

    fn from_str(text: &str) -> Result<Self, GenomeError> {
        let (operation, digits) = text.split_once(':').unwrap_or((text, ""));
        let bad = || GenomeError::Genes(digits.to_owned());
        let operation = operation.parse()?;
        if digits.len() != 2 * Gene::COUNT || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return Err(bad());
        }
        let mut genes = [0; Gene::COUNT];
        for (gene, pair) in genes.iter_mut().zip(digits.as_bytes().chunks(2)) {
            let pair = str::from_utf8(pair).map_err(|_| bad())?;
            *gene = u8::from_str_radix(pair, 16).map_err(|_| bad())?;
        }
        Ok(Self { operation, genes })
    }
}

#[cfg(test)]
mod tests {
    use rand::{SeedableRng, rngs::StdRng};

    use super::*;

    #[test]
    fn genome_round_trips_through_its_text() {
        let mut random = StdRng::seed_from_u64(1);
        for operation in Operation::ALL {
            let genome = Genome::random(operation, &mut random);
            assert_eq!(genome.to_string().parse(), Ok(genome));
        }
        let digits = "0".repeat(2 * Gene::COUNT);
        assert_eq!(format!("schema:{digits}").parse(), Ok(Genome::plain(Operation::Schema)));
        for bad in ["", "schema", "schema:", "schema:00", &format!("none:{digits}"), &format!("schema:é{digits}")] {
            assert!(bad.parse::<Genome>().is_err(), "{bad}");
        }
        assert!(
            format!("schema:+{}", "0".repeat(2 * Gene::COUNT - 1)).parse::<Genome>().is_err(),
            "a sign is no digit"
        );
    }

    #[test]
    fn every_choice_of_a_gene_is_reachable() {
        let plain = Genome::plain(Operation::ArrayGet);
        let chosen: Vec<char> =
            (0..6).map(|gene| plain.clone().with(Gene::Format, gene).pick(Gene::Format, &['a', 'b', 'c'])).collect();
        assert_eq!(chosen, ['a', 'b', 'c', 'a', 'b', 'c']);
        assert!(plain.clone().with(Gene::Flags, 4).has(Gene::Flags, 2) && !plain.has(Gene::Flags, 2));
    }

    #[test]
    fn mutation_changes_few_genes_and_no_operation() {
        let mut random = StdRng::seed_from_u64(2);
        let parent = Genome::random(Operation::NodePut, &mut random);
        let mut changed = [false; Gene::COUNT];
        for _ in 0..500 {
            let child = parent.mutated(&mut random);
            assert_eq!(child.operation, parent.operation);
            let differ: Vec<usize> = (0..Gene::COUNT).filter(|&at| child.genes[at] != parent.genes[at]).collect();
            assert!(differ.len() <= 3);
            differ.into_iter().for_each(|at| changed[at] = true);
        }
        assert_eq!(changed, [true; Gene::COUNT], "every gene changes eventually");
        let other = Genome::random(Operation::NodePut, &mut random);
        let crossed = parent.crossed(&other, &mut random);
        assert!((0..Gene::COUNT).all(|at| [parent.genes[at], other.genes[at]].contains(&crossed.genes[at])));
        assert!(crossed != parent && crossed != other);
    }

    #[test]
    fn same_seed_yields_same_genomes() {
        let children = |seed| {
            let mut random = StdRng::seed_from_u64(seed);
            let parent = Genome::random(Operation::ArrayRead, &mut random);
            (0..10).map(|_| parent.mutated(&mut random)).collect::<Vec<_>>()
        };
        assert_eq!(children(7), children(7));
        assert_ne!(children(7), children(8));
    }
}
