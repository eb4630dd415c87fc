//! Floats beyond the first three of exact sums.

use zarrd_codec::filled;

use super::total::two_sum;

/// The most levels.
const MAX_LEVELS: usize = 12;

/// Further floats of the sums of some groups, of which each takes what the addition to the one before rounds off.
///
/// A level has a float of every group. It is made when the first of them is needed, and takes much less memory than
/// fixed-point numbers do if many groups have numbers of very different magnitudes.
#[derive(Debug)]
pub(super) struct FurtherFloats {
    levels: Vec<Vec<f64>>,
    groups: usize,
    most: usize,
}

impl FurtherFloats {
    /// No floats, of which there may be as many as half of `memory` has room for, in bytes.
    pub(super) fn new(groups: usize, memory: u64) -> Self {
        let most = (memory / 2).checked_div(size_of_level(groups)).unwrap_or(0);
        Self { levels: Vec::new(), groups, most: usize::try_from(most).unwrap_or(MAX_LEVELS).min(MAX_LEVELS) }
    }

    /// The memory of all floats that there may be, in bytes.
    pub(super) fn max_memory(&self) -> u64 {
        size_of_level(self.groups).saturating_mul(self.most as u64)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    /// The levels, each with a float of every group.
    pub(super) fn levels(&self) -> &[Vec<f64>] {
        &self.levels
    }

    /// The floats of a group.
    pub(super) fn of(&self, group: usize) -> impl Iterator<Item = f64> {
        self.levels.iter().filter_map(move |level| level.get(group).copied()).filter(|&float| float != 0.0)
    }

    /// Adds a float to the sum of a group if nothing is rounded off; else changes nothing and returns false.
    pub(super) fn add(&mut self, group: usize, value: f64) -> bool {
        let mut sums = [0.0; MAX_LEVELS];
        let mut rest = value;
        let mut changed = 0;
        let levels = self.levels.iter().filter_map(|level| level.get(group));
        for (&float, sum) in levels.zip(&mut sums) {
            if rest == 0.0 {
                break;
            }
            (*sum, rest) = two_sum(float, rest);
            changed += 1;
        }
        if !rest.is_finite() || rest != 0.0 && self.levels.len() >= self.most {
            return false;
        }
        for (level, sum) in self.levels.iter_mut().zip(sums).take(changed) {
            level.get_mut(group).into_iter().for_each(|slot| *slot = sum);
        }
        if rest != 0.0 {
            let mut level = filled(0.0, self.groups);
            level.get_mut(group).into_iter().for_each(|slot| *slot = rest);
            self.levels.push(level);
        }
        true
    }
}

/// The memory of a level, in bytes.
fn size_of_level(groups: usize) -> u64 {
    (groups as u64).saturating_mul(size_of::<f64>() as u64)
}
