//! The memory of one request.

use std::{sync::Arc, time::Duration};

use super::{Caller, Class, Classes, Permit, Refused};
use crate::ArrayError;

/// In what memory is counted.
const UNIT: u64 = 1 << 10;

/// Up to how much memory is little, so that it is taken of what is kept for those who want no more.
const LITTLE: u64 = 4 << 20;

/// The memory that one request has.
///
/// A request waits for memory at most once, at its beginning, for the least that it can do with: [`reserve`](Self::reserve) uses up the turn to wait. What it wants beyond, it takes
/// if that is free ([`try_more`](Self::try_more)), and else does without. So whoever waits holds nothing, and whoever holds something never waits.
#[derive(Debug)]
pub(crate) struct Account(State);

#[derive(Debug)]
enum State {
    /// It has nothing, and may wait once.
    Empty(Turn),
    /// It has nothing, and its request has something elsewhere.
    Beside(Turn),
    /// It has something, and may not wait any more.
    Open(Permit),
}

/// The right to wait for memory. It is not given twice.
#[derive(Debug)]
struct Turn {
    memory: Arc<Classes>,
    caller: Caller,
    patience: Duration,
}

impl Account {
    /// How many units so many bytes are.
    pub(crate) fn units(bytes: u64) -> u64 {
        bytes.div_ceil(UNIT)
    }

    /// An account of which nothing is taken yet.
    pub(crate) fn new(memory: Arc<Classes>, caller: Caller, patience: Duration) -> Self {
        Self(State::Empty(Turn { memory, caller, patience }))
    }

    /// Makes sure that there are so many bytes: waits for them where there is nothing yet, else takes what is missing if that is free.
    pub(crate) async fn reserve(&mut self, bytes: u64) -> Result<(), ArrayError> {
        let units = Self::units(bytes);
        match &mut self.0 {
            State::Empty(_) if units == 0 => {}
            State::Empty(turn) => {
                let class = if bytes <= LITTLE { Class::Little } else { Class::Much };
                let permit = turn.memory.take(turn.caller, units, class, turn.patience).await?;
                self.0 = State::Open(permit);
            }
            State::Beside(turn) => {
                let permit = turn.memory.try_take(turn.caller, units).ok_or(ArrayError::Busy)?;
                self.0 = State::Open(permit);
            }
            State::Open(permit) => {
                let missing = units.saturating_sub(permit.amount());
                if missing > 0 && !permit.try_grow(missing) {
                    return Err(ArrayError::Busy);
                }
            }
        }
        Ok(())
    }

    /// Takes more if it is free. There has to be something already.
    pub(crate) fn try_more(&mut self, bytes: u64) -> bool {
        match &mut self.0 {
            State::Empty(_) | State::Beside(_) => false,
            State::Open(permit) => permit.try_grow(Self::units(bytes)),
        }
    }

    /// The account of a request that has memory elsewhere: it never waits.
    #[must_use]
    pub(crate) fn beside(self) -> Self {
        match self.0 {
            State::Empty(turn) | State::Beside(turn) => Self(State::Beside(turn)),
            open @ State::Open(_) => Self(open),
        }
    }

    /// What was reserved, on its own.
    pub(crate) fn into_permit(self) -> Option<Permit> {
        match self.0 {
            State::Empty(_) | State::Beside(_) => None,
            State::Open(permit) => Some(permit),
        }
    }
}

impl From<Refused> for ArrayError {
    fn from(refused: Refused) -> Self {
        match refused {
            Refused::Others => Self::Busy,
            Refused::Own => Self::TooManyRequests,
        }
    }
}
