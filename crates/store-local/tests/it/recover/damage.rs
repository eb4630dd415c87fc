//! Random damages of the files of a store, which can be undone.

use std::{
    fs::{self, File},
    os::unix::fs::FileExt,
    path::{Path, PathBuf},
};

use zarrd_store_local::IndexKind;

use super::sample::files;

/// A generator of numbers that are the same for the same seed.
pub(super) struct Random(u64);

/// A damage of one file, of two files, or two damages.
#[derive(Debug)]
pub(super) enum Damage {
    Bit {
        file: PathBuf,
        bit: u64,
    },
    /// Random bytes in place of some.
    Bytes {
        file: PathBuf,
        offset: u64,
        bytes: Vec<u8>,
        kind: &'static str,
    },
    Gone {
        file: PathBuf,
    },
    Cut {
        file: PathBuf,
        len: u64,
    },
    Swapped {
        files: [PathBuf; 2],
    },
    /// Two pages of a file.
    SwappedPages {
        file: PathBuf,
        offsets: [u64; 2],
    },
    Both(Box<[Damage; 2]>),
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    pub(super) fn fill(&mut self, bytes: &mut [u8]) {
        for part in bytes.chunks_mut(8) {
            let number = self.next().to_le_bytes();
            part.copy_from_slice(&number[..part.len()]);
        }
    }
}

impl Damage {
    /// A damage of a random file: half of them are of the index, a quarter of the log.
    pub(super) fn random(dir: &Path, random: &mut Random) -> Self {
        if random.below(8) == 0 {
            return Self::Both(Box::new([Self::one(dir, random), Self::one(dir, random)]));
        }
        Self::one(dir, random)
    }

    fn one(dir: &Path, random: &mut Random) -> Self {
        let part = ["index", "index", "index", "index", "log", "log", "values", ""][random.below(8)];
        let mut candidates = files(&dir.join(part));
        candidates.retain(|file| fs::metadata(file).unwrap().len() > 0 && !file.starts_with(dir.join("ballast")));
        if part.is_empty() {
            candidates.retain(|file| file.parent() == Some(dir));
        }
        let file = candidates[random.below(candidates.len())].clone();
        let used = used_len(&file);
        match random.below(7) {
            0 | 1 => Self::Bit { bit: random.below((used * 8) as usize) as u64, file },
            2 => Self::bytes(file, used, 512, "sector", random),
            3 => Self::bytes(file, used, 4096, "page", random),
            4 => Self::Gone { file },
            5 => Self::Cut { len: random.below(used as usize) as u64, file },
            _ if used > 8192 && random.below(2) == 0 => {
                let pages = used as usize / 4096;
                let offsets = [random.below(pages) as u64 * 4096, random.below(pages) as u64 * 4096];
                Self::SwappedPages { file, offsets }
            }
            _ => Self::Swapped { files: [file, candidates[random.below(candidates.len())].clone()] },
        }
    }

    fn bytes(file: PathBuf, used: u64, len: u64, kind: &'static str, random: &mut Random) -> Self {
        // Mostly aligned, as on a disk.
        let unit = if random.below(3) == 0 { 1 } else { len };
        let offset = random.below(used as usize) as u64 / unit * unit;
        let mut bytes = vec![0; len.min(used - offset) as usize];
        if random.below(2) == 0 {
            random.fill(&mut bytes);
        }
        Self::Bytes { file, offset, bytes, kind }
    }

    /// One bit of the used part of an index.
    pub(super) fn bit_of_index(dir: &Path, kind: IndexKind, random: &mut Random) -> Self {
        let file = dir.join("index").join(if kind == IndexKind::Sled { "db" } else { "index.redb" });
        let bit = random.below((used_len(&file) * 8) as usize) as u64;
        Self::Bit { file, bit }
    }

    /// The middle of a full leaf of a redb index that is not the first.
    pub(super) fn leaf_of_redb(dir: &Path) -> Self {
        let file = dir.join("index/index.redb");
        let bytes = fs::read(&file).unwrap();
        let key = b"lab/array2/c/1/";
        let offset = bytes.windows(key.len()).rposition(|window| window == key).unwrap() as u64 / 4096 * 4096;
        Self::Bytes { file, offset, bytes: vec![0; 4096], kind: "page" }
    }

    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Bit { .. } => "bit",
            Self::Bytes { kind, .. } => kind,
            Self::Gone { .. } => "file gone",
            Self::Cut { .. } => "cut",
            Self::Swapped { .. } => "files swapped",
            Self::SwappedPages { .. } => "pages swapped",
            Self::Both(_) => "two at once",
        }
    }

    /// True if a file in this directory of the store is damaged.
    pub(super) fn is_of(&self, part: &str) -> bool {
        let is_in = |file: &Path| file.components().any(|component| component.as_os_str() == part);
        match self {
            Self::Bit { file, .. } | Self::Bytes { file, .. } | Self::Gone { file } => is_in(file),
            Self::Cut { file, .. } | Self::SwappedPages { file, .. } => is_in(file),
            Self::Swapped { files } => files.iter().any(|file| is_in(file)),
            Self::Both(damages) => damages.iter().any(|damage| damage.is_of(part)),
        }
    }

    /// The part of the store that is damaged.
    pub(super) fn place(&self) -> &'static str {
        let file = match self {
            Self::Bit { file, .. } | Self::Bytes { file, .. } | Self::Gone { file } => file,
            Self::Cut { file, .. } | Self::SwappedPages { file, .. } => file,
            Self::Swapped { files: [file, _] } => file,
            Self::Both(_) => return "in two places",
        };
        let names = ["index", "log", "values"].into_iter();
        let mut names = names.filter(|name| file.components().any(|part| part.as_os_str() == *name));
        match names.next() {
            Some("index") => "in the index",
            Some("log") => "in the log",
            Some(_) => "in values",
            None => "in other files",
        }
    }

    /// Damages the files. Returns what undoes that.
    pub(super) fn apply(&self) -> Box<dyn FnOnce()> {
        match self {
            Self::Bit { file, bit } => {
                let undo = saved(file, bit / 8, 1);
                let mut byte = [0];
                let opened = File::options().read(true).write(true).open(file).unwrap();
                opened.read_exact_at(&mut byte, bit / 8).unwrap();
                opened.write_all_at(&[byte[0] ^ (1 << (bit % 8))], bit / 8).unwrap();
                undo
            }
            Self::Bytes { file, offset, bytes, .. } => {
                let undo = saved(file, *offset, bytes.len());
                File::options().write(true).open(file).unwrap().write_all_at(bytes, *offset).unwrap();
                undo
            }
            Self::Gone { file } => {
                let aside = aside(file);
                // Another damage may have removed it.
                if fs::rename(file, &aside).is_err() {
                    return Box::new(|| ());
                }
                let file = file.clone();
                Box::new(move || fs::rename(aside, file).unwrap())
            }
            Self::Cut { file, len } => {
                let Ok(size) = fs::metadata(file).map(|metadata| metadata.len()) else { return Box::new(|| ()) };
                let undo = saved(file, *len, size.saturating_sub(*len) as usize);
                File::options().write(true).open(file).unwrap().set_len((*len).min(size)).unwrap();
                undo
            }
            Self::Swapped { files: [one, other] } => {
                let swap = |one: &Path, other: &Path| {
                    let aside = aside(one);
                    if one == other || !one.exists() || !other.exists() {
                        return;
                    }
                    fs::rename(one, &aside).unwrap();
                    fs::rename(other, one).unwrap();
                    fs::rename(&aside, other).unwrap();
                };
                swap(one, other);
                let (one, other) = (one.clone(), other.clone());
                Box::new(move || swap(&one, &other))
            }
            Self::SwappedPages { file, offsets: [one, other] } => {
                let (undo_one, undo_other) = (saved(file, *one, 4096), saved(file, *other, 4096));
                let opened = File::options().read(true).write(true).open(file).unwrap();
                let mut pages = [vec![0; 4096], vec![0; 4096]];
                opened.read_exact_at(&mut pages[0], *one).unwrap();
                opened.read_exact_at(&mut pages[1], *other).unwrap();
                opened.write_all_at(&pages[0], *other).unwrap();
                opened.write_all_at(&pages[1], *one).unwrap();
                Box::new(move || {
                    undo_other();
                    undo_one();
                })
            }
            Self::Both(damages) => {
                let first = damages[0].apply();
                // The first one may have removed or cut the file of the second one.
                let second = if damages[1].can_be_applied() { damages[1].apply() } else { Box::new(|| ()) };
                Box::new(move || {
                    second();
                    first();
                })
            }
        }
    }

    fn can_be_applied(&self) -> bool {
        let len = |file: &Path| fs::metadata(file).map_or(0, |metadata| metadata.len());
        match self {
            Self::Bit { file, bit } => bit / 8 < len(file),
            Self::Bytes { file, offset, bytes, .. } => offset + bytes.len() as u64 <= len(file),
            Self::SwappedPages { file, offsets } => offsets.iter().all(|offset| offset + 4096 <= len(file)),
            Self::Cut { file, len: cut } => *cut <= len(file) && file.exists(),
            Self::Gone { file } => file.exists(),
            Self::Swapped { files } => files.iter().all(|file| file.exists()),
            Self::Both(_) => false,
        }
    }
}

fn aside(file: &Path) -> PathBuf {
    // Outside of the store, on the same file system.
    std::env::temp_dir().join(format!("aside-{}-{:p}", std::process::id(), file))
}

/// Writes a part of a file again, as it is now.
fn saved(file: &Path, offset: u64, len: usize) -> Box<dyn FnOnce()> {
    let mut bytes = vec![0; len];
    File::open(file).unwrap().read_exact_at(&mut bytes, offset).unwrap();
    let file = file.to_owned();
    Box::new(move || File::options().write(true).open(file).unwrap().write_all_at(&bytes, offset).unwrap())
}

/// The length of a file without the zeros at its end, which segments and new pages have.
fn used_len(file: &Path) -> u64 {
    let bytes = fs::read(file).unwrap();
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(bytes.len(), |last| last + 1);
    used as u64
}
