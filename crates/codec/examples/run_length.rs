//! A codec of one's own: run lengths, as pairs of a count and a byte.
//!
//! ```text
//! cargo run -p zarrd-codec --example run_length
//! ```
//!
//! A codec implements one of three traits, here `BytesToBytes`. The rule for all of them: stored bytes are a stranger's, so
//! a decoder compares the size of its output with its limit before it allocates. What does not work: the list of codecs is
//! fixed when zarrd is compiled, and a chain that names another codec is refused, as the last line shows. CONTRIBUTING.md
//! has the steps by which this one would become an entry of that list.
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error;

use bytes::Bytes;
use serde_json::json;
use zarrd_codec::{BytesToBytes, ChunkRepresentation, CodecChain, CodecError, Cost, EncodedSizeBound};
use zarrd_meta::{codecs::CodecSpec, data_type::parse_v3};

const NAME: &str = "run_length";

#[derive(Debug)]
struct RunLength;

impl BytesToBytes for RunLength {
    fn decode(&self, encoded: Bytes, limit: u64) -> Result<Bytes, CodecError> {
        let (pairs, rest) = encoded.as_chunks::<2>();
        let whole = (pairs.len() * 2) as u64;
        if !rest.is_empty() {
            return Err(CodecError::LengthMismatch { codec: NAME, expected: whole, found: encoded.len() as u64 });
        }
        // The sum of up to 2^32 counts of a byte each fits.
        let size: u64 = pairs.iter().map(|[count, _]| u64::from(*count)).sum();
        if size > limit {
            return Err(CodecError::OutputTooLong { codec: NAME, limit });
        }
        let runs = pairs.iter().map(|[count, byte]| std::iter::repeat_n(*byte, usize::from(*count)));
        Ok(runs.flatten().collect())
    }

    fn encode(&self, decoded: Bytes) -> Result<Bytes, CodecError> {
        let runs = decoded.chunk_by(|one, next| one == next).flat_map(|run| run.chunks(255));
        let pairs = runs.filter_map(|run| Some([run.len() as u8, *run.first()?]));
        Ok(pairs.flatten().collect())
    }

    fn encoded_size(&self, decoded: u64) -> EncodedSizeBound {
        EncodedSizeBound::AtMost(decoded.saturating_mul(2))
    }

    fn cost(&self) -> Cost {
        Cost::symmetric(2)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let bytes = Bytes::from([vec![7; 1000], vec![8, 9]].concat());
    let encoded = RunLength.encode(bytes.clone())?;
    println!("{} bytes become {}", bytes.len(), encoded.len());
    println!("they come back: {}", RunLength.decode(encoded.clone(), bytes.len() as u64)? == bytes);
    match RunLength.decode(encoded, 100) {
        Ok(_) => println!("a bug: more than the limit was decoded"),
        Err(error) => println!("with a limit of 100 bytes: {error}"),
    }

    let specs = [json!("bytes"), json!({"name": NAME})].map(|codec| CodecSpec::parse_v3(&codec));
    let specs = specs.into_iter().collect::<Result<Vec<_>, _>>()?;
    let chunk = ChunkRepresentation::new(parse_v3(&json!("uint8"))?, vec![1002], vec![0])?;
    match CodecChain::new(&specs, chunk) {
        Ok(_) => println!("{NAME} is built in"),
        Err(error) => println!("in an array: {error}"),
    }
    Ok(())
}
