//! Archives of `.npy` files.

use zarrd_wire::elements::npz::{MAX_MEMBERS, MAX_PIECE, NpzError, NpzEvent, NpzReader};

/// The most bytes of all members.
const LIMIT: u64 = 1 << 20;

/// Reads an archive, in one piece and in pieces of the length in the first byte, and compares the two.
pub fn npz(data: &[u8]) {
    let Some((&piece, archive)) = data.split_first() else { return };
    // Which of several errors is found first may depend on the pieces.
    let whole = read(archive, archive.len().max(1)).ok();
    let parts = read(archive, usize::from(piece).max(1)).ok();
    assert_eq!(whole, parts);
}

/// The members, or the error after which nothing is read.
fn read(archive: &[u8], piece: usize) -> Result<Vec<(String, Vec<u8>)>, String> {
    let mut reader = NpzReader::new(LIMIT);
    let mut members: Vec<(String, Vec<u8>)> = Vec::new();
    let shown = |error: NpzError| error.to_string();
    for bytes in archive.chunks(piece) {
        reader.push(bytes);
        loop {
            match reader.next_event().map_err(shown)? {
                NpzEvent::More | NpzEvent::End => break,
                NpzEvent::Member(name) => members.push((name, Vec::new())),
                NpzEvent::Data(piece) => {
                    assert!((1..=MAX_PIECE).contains(&piece.len()));
                    members.last_mut().expect("a member began").1.extend(piece);
                }
                NpzEvent::MemberEnd => {}
            }
        }
    }
    reader.finish().map_err(shown)?;
    assert!(members.len() <= MAX_MEMBERS);
    assert!(members.iter().map(|(_, content)| content.len() as u64).sum::<u64>() <= LIMIT);
    Ok(members)
}
