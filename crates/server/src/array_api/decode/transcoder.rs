//! Elements of a fixed size as they stream in.

use bytes::{Bytes, BytesMut};
use codec::Swap;
use futures::{StreamExt, TryStreamExt, stream};
use meta::data_type::{DataType, Number};
use store::ByteStream;

use super::{IncomingError, indices};

/// About how many bytes are made of elements at a time, where they become larger.
const BLOCK: usize = 256 << 10;

/// What becomes of each element on its way.
pub(super) struct Passage {
    /// How many bytes all of them have, if that is known.
    pub(super) expected: Option<u64>,
    /// Their extents, to say which one is wrong.
    pub(super) extents: Vec<Option<u64>>,
    /// The type of the array.
    pub(super) data_type: DataType,
    /// The size of an element as it comes.
    pub(super) size: usize,
    /// How its words are swapped, before anything else.
    pub(super) swap: Swap,
}

struct State {
    stream: ByteStream,
    passage: Passage,
    /// How many bytes came.
    received: u64,
    /// How many elements were let through.
    passed: u64,
    /// What came and was not let through yet.
    rest: BytesMut,
    ended: bool,
}

impl Passage {
    /// The elements as the array has them: of its size, with zeros at their ends where they came smaller, and little-endian. The stream fails where more
    /// or fewer come, and where one is none of the data type.
    pub(super) fn through(self, stream: ByteStream) -> ByteStream {
        let state = State { stream, passage: self, received: 0, passed: 0, rest: BytesMut::new(), ended: false };
        let pieces = stream::try_unfold(state, |mut state| async move {
            Ok(state.next().await.map_err(IncomingError::broken)?.map(|piece| (piece, state)))
        });
        pieces.boxed()
    }

    fn larger(&self) -> Option<usize> {
        self.data_type.fixed_size().filter(|size| *size > self.size)
    }

    fn is_checked(&self) -> bool {
        self.data_type.number() == Some(Number::Bool)
    }
}

impl State {
    async fn next(&mut self) -> Result<Option<Bytes>, IncomingError> {
        loop {
            if let Some(piece) = self.ready()? {
                return Ok(Some(piece));
            }
            if self.ended {
                return Ok(None);
            }
            match self.stream.try_next().await? {
                Some(piece) if self.passes_as_it_is() => {
                    self.count(piece.len())?;
                    if !piece.is_empty() {
                        return Ok(Some(piece));
                    }
                }
                Some(piece) => {
                    self.count(piece.len())?;
                    self.rest.extend_from_slice(&piece);
                }
                None => self.end()?,
            }
        }
    }

    fn passes_as_it_is(&self) -> bool {
        let passage = &self.passage;
        passage.swap == Swap::Nothing && passage.larger().is_none() && !passage.is_checked()
    }

    fn count(&mut self, len: usize) -> Result<(), IncomingError> {
        self.received = self.received.saturating_add(len as u64);
        match self.passage.expected {
            Some(expected) if self.received > expected => Err(IncomingError::Length { expected, found: self.received }),
            _ => Ok(()),
        }
    }

    fn end(&mut self) -> Result<(), IncomingError> {
        self.ended = true;
        match self.passage.expected {
            Some(expected) if expected != self.received => {
                Err(IncomingError::Length { expected, found: self.received })
            }
            // A part of an element is an error of whoever counts the steps.
            _ => Ok(()),
        }
    }

    /// Whole elements of what came, as they are to be; `None` where there is none yet.
    fn ready(&mut self) -> Result<Option<Bytes>, IncomingError> {
        let size = self.passage.size.max(1);
        let whole = self.rest.len() / size;
        let count = match self.passage.larger() {
            Some(larger) => whole.min((BLOCK / larger).max(1)),
            None => whole,
        };
        if count == 0 {
            // What is left at the end is no element. Whoever takes the elements counts it.
            let part = self.ended && !self.rest.is_empty();
            return Ok(part.then(|| self.rest.split().freeze()));
        }
        let mut elements = self.rest.split_to(count.saturating_mul(size));
        self.passage.swap.apply_to(&mut elements);
        self.check(&elements)?;
        self.passed = self.passed.saturating_add(count as u64);
        Ok(Some(match self.passage.larger() {
            None => elements.freeze(),
            Some(larger) => widened(&elements, size, larger),
        }))
    }

    fn check(&self, elements: &[u8]) -> Result<(), IncomingError> {
        let data_type = &self.passage.data_type;
        if !self.passage.is_checked() || data_type.flaw(elements).is_none() {
            return Ok(());
        }
        let flaws = elements.chunks(self.passage.size.max(1)).map(|element| data_type.flaw(element));
        match flaws.enumerate().find_map(|(index, flaw)| Some((index as u64, flaw?))) {
            Some((index, flaw)) => {
                let at = indices(&self.passage.extents, self.passed.saturating_add(index));
                Err(IncomingError::Element { at, flaw })
            }
            None => Ok(()),
        }
    }
}

fn widened(elements: &[u8], size: usize, larger: usize) -> Bytes {
    let mut out = Vec::with_capacity((elements.len() / size.max(1)).saturating_mul(larger));
    for element in elements.chunks(size.max(1)) {
        let end = out.len().saturating_add(larger);
        out.extend_from_slice(element);
        out.resize(end, 0);
    }
    out.into()
}
