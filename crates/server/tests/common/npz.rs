//! Files of NumPy.

use flate2::Crc;

/// A `.npy` file of version 1.
pub fn npy(descr: &str, shape: &[u64], bytes: &[u8]) -> Vec<u8> {
    let mut file = zarrd_wire::elements::npy::render_header(&format!("'{descr}'"), shape);
    file.extend(bytes);
    file
}

/// A `.npz` file with stored members, as `numpy.savez` writes it.
pub fn npz(members: &[(&str, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    let mut directory = Vec::new();
    for (name, content) in members {
        let name = format!("{name}.npy");
        let mut crc = Crc::new();
        crc.update(content);
        let size = u32::try_from(content.len()).unwrap().to_le_bytes();
        let start = u32::try_from(file.len()).unwrap();
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        common.extend(crc.sum().to_le_bytes());
        common.extend([size, size].concat());
        common.extend(u16::try_from(name.len()).unwrap().to_le_bytes());
        common.extend([0; 2]);
        file.extend([b"PK\x03\x04".as_slice(), &common, name.as_bytes(), content].concat());
        directory.extend([b"PK\x01\x02\x14\0".as_slice(), &common, &[0; 10], &start.to_le_bytes()].concat());
        directory.extend(name.as_bytes());
    }
    let (start, count) = (u32::try_from(file.len()).unwrap(), u16::try_from(members.len()).unwrap());
    let len = u32::try_from(directory.len()).unwrap();
    file.extend(directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend([count, count].map(u16::to_le_bytes).concat());
    file.extend([len, start].map(u32::to_le_bytes).concat());
    file.extend([0; 2]);
    file
}

/// The little-endian bytes of numbers.
pub fn longs(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The little-endian bytes of floats.
pub fn singles(values: &[f32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// The little-endian bytes of doubles.
pub fn doubles(values: &[f64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}
