//! The archives in `testdata` were written by NumPy 2.4.6: `savez` and `savez_compressed` of `time=arange(3, "<i8")` and
//! `rain=(arange(6, "<f4") / 2).reshape(3, 2)`, into files, and into streams that cannot seek (`piped`).

use proptest::prelude::*;

use super::*;

const STORED: &[u8] = include_bytes!("testdata/stored.npz");
const DEFLATED: &[u8] = include_bytes!("testdata/deflated.npz");
const PIPED: &[u8] = include_bytes!("testdata/piped.npz");
const PIPED_STORED: &[u8] = include_bytes!("testdata/piped-stored.npz");
const EMPTY: &[u8] = include_bytes!("testdata/empty.npz");

type Members = Vec<(String, Vec<u8>)>;

fn read_in_pieces(archive: &[u8], piece: usize, limit: u64) -> Result<Members, NpzError> {
    let mut reader = NpzReader::new(limit);
    let mut members = Members::new();
    for bytes in archive.chunks(piece) {
        reader.push(bytes);
        loop {
            match reader.next_event()? {
                NpzEvent::More | NpzEvent::End => break,
                NpzEvent::Member(name) => members.push((name, Vec::new())),
                NpzEvent::Data(piece) => {
                    assert!((1..=MAX_PIECE).contains(&piece.len()));
                    members.last_mut().unwrap().1.extend(piece);
                }
                NpzEvent::MemberEnd => {}
            }
        }
    }
    reader.finish()?;
    Ok(members)
}

/// The members, however the archive arrives.
fn read(archive: &[u8]) -> Result<Members, NpzError> {
    let found = read_in_pieces(archive, archive.len().max(1), 1 << 20);
    for piece in [1, 7, 64] {
        assert_eq!(read_in_pieces(archive, piece, 1 << 20), found, "in pieces of {piece} bytes");
    }
    found
}

#[test]
fn archives_of_numpy_are_read() {
    let expected = read(STORED).unwrap();
    assert_eq!(expected.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["time", "rain"]);
    let (time, rain) = (&expected[0].1, &expected[1].1);
    assert_eq!(time.len(), 128 + 24);
    assert_eq!(&time[128..], [0_i64, 1, 2].map(i64::to_le_bytes).concat());
    assert_eq!(&rain[128..], [0.0_f32, 0.5, 1.0, 1.5, 2.0, 2.5].map(f32::to_le_bytes).concat());
    assert_eq!(read(DEFLATED), Ok(expected.clone()));
    assert_eq!(read(PIPED), Ok(expected));
    assert_eq!(read(EMPTY), Ok(Vec::new()));
    assert!(matches!(read(PIPED_STORED), Err(NpzError::Unsupported { .. })));
}

#[test]
fn members_are_bounded_by_the_limit() {
    let size = 2 * 128 + 24 + 24;
    assert!(read_in_pieces(DEFLATED, 64, size).is_ok());
    assert_eq!(read_in_pieces(DEFLATED, 64, size - 1), Err(NpzError::TooLarge { limit: size - 1 }));
    // A bomb: 100 MB of zeros in 100 KB, of which no more is made than the limit.
    let mut deflate = flate2::write::DeflateEncoder::new(Vec::new(), flate2::Compression::best());
    for _ in 0..1600 {
        std::io::Write::write_all(&mut deflate, &[0; 64 << 10]).unwrap();
    }
    let bomb = archive(&[("a.npy", 8, &deflate.finish().unwrap(), 0, 1600 * (64 << 10))]);
    assert!(bomb.len() < 200_000);
    assert_eq!(read_in_pieces(&bomb, 4096, 1 << 20), Err(NpzError::TooLarge { limit: 1 << 20 }));
}

#[test]
fn damaged_archives_are_rejected() {
    assert_eq!(read(b"\x93NUMPY"), Err(NpzError::Magic));
    assert_eq!(read(b"PK"), Err(NpzError::Ended));
    assert_eq!(read_in_pieces(&[STORED, b"x"].concat(), 1 << 20, 1 << 20), Err(NpzError::Trailing));
    for len in 0..STORED.len() {
        assert!(read_in_pieces(&STORED[..len], 1 << 20, 1 << 20).is_err(), "cut at {len}");
    }
    // Each changed bit is noticed, but for those that have no meaning: of versions, dates and attributes.
    for archive in [STORED, DEFLATED, PIPED] {
        let expected = read_in_pieces(archive, 1 << 20, 1 << 20);
        for at in 0..archive.len() {
            let mut changed = archive.to_vec();
            changed[at] ^= 1;
            let found = read_in_pieces(&changed, 1 << 20, 1 << 20);
            assert!(found.is_err() || found == expected, "byte {at}");
        }
    }
}

#[test]
fn members_have_to_be_those_of_the_directory() {
    let good: &[Stored<'_>] = &[("a.npy", 0, b"xy", crc(b"xy"), 2), ("b", 0, b"", 0, 0)];
    let members = vec![("a".to_owned(), b"xy".to_vec()), ("b".to_owned(), Vec::new())];
    assert_eq!(read(&archive(good)), Ok(members));
    let differs = |headers: &[Stored<'_>], directory: &[Stored<'_>]| {
        let found = read(&archive_with(headers, directory));
        assert_eq!(found, Err(NpzError::Damaged("its directory differs from its members")));
    };
    differs(good, &good[..1]);
    differs(&good[..1], good);
    differs(good, &[good[1], good[0]]);
    differs(&good[1..], &[("c", 0, b"", 0, 0)]);
    let twice = archive(&[good[1], good[1]]);
    assert_eq!(read(&twice), Err(NpzError::Repeated { name: "b".into() }));
    let wrong = archive(&[("a", 0, b"xy", 7, 2)]);
    assert!(matches!(read(&wrong), Err(NpzError::Member { what: "its checksum is wrong", .. })));
    assert!(matches!(read(&archive(&[("a", 12, b"xy", 7, 2)])), Err(NpzError::Unsupported { .. })));
    assert!(matches!(read(&archive(&[("a", 8, b"\x07", 7, 2)])), Err(NpzError::Member { .. })));
    let mut encrypted = archive(good);
    encrypted[6] |= 1;
    assert!(matches!(read(&encrypted), Err(NpzError::Unsupported { how: "encrypted or patched", .. })));
}

/// A member: its name, method, stored bytes, checksum and size.
type Stored<'a> = (&'a str, u16, &'a [u8], u32, u32);

fn crc(bytes: &[u8]) -> u32 {
    let mut crc = Crc::new();
    crc.update(bytes);
    crc.sum()
}

fn archive(members: &[Stored<'_>]) -> Vec<u8> {
    archive_with(members, members)
}

fn archive_with(members: &[Stored<'_>], directory: &[Stored<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut starts = Vec::new();
    let common = |(name, method, bytes, checksum, size): &Stored<'_>| {
        let mut common = vec![20, 0, 0, 0];
        common.extend(method.to_le_bytes());
        common.extend([0; 4]);
        common.extend(checksum.to_le_bytes());
        common.extend((bytes.len() as u32).to_le_bytes());
        common.extend(size.to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0; 2]);
        common
    };
    for member in members {
        starts.push(out.len() as u32);
        out.extend(b"PK\x03\x04");
        out.extend(common(member));
        out.extend(member.0.as_bytes());
        out.extend(member.2);
    }
    let start = out.len() as u32;
    for (index, entry) in directory.iter().enumerate() {
        out.extend(b"PK\x01\x02\x14\0");
        out.extend(common(entry));
        out.extend([0; 10]);
        out.extend(starts.get(index).copied().unwrap_or_default().to_le_bytes());
        out.extend(entry.0.as_bytes());
    }
    let len = out.len() as u32 - start;
    out.extend(b"PK\x05\x06\0\0\0\0");
    out.extend([directory.len() as u16; 2].map(u16::to_le_bytes).concat());
    out.extend(len.to_le_bytes());
    out.extend(start.to_le_bytes());
    out.extend([0; 2]);
    out
}

proptest! {
    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200), piece in 1_usize..50) {
        let _ = read_in_pieces(&bytes, piece, 1 << 20);
        let _ = read_in_pieces(&[b"PK\x03\x04", bytes.as_slice()].concat(), piece, 1 << 20);
    }

    #[test]
    fn damaged_bytes_never_panic(at in 0_usize..900, byte: u8, piece in 1_usize..50) {
        for archive in [STORED, DEFLATED, PIPED] {
            let mut changed = archive.to_vec();
            if let Some(found) = changed.get_mut(at) {
                *found = byte;
            }
            let _ = read_in_pieces(&changed, piece, 1 << 20);
        }
    }
}
