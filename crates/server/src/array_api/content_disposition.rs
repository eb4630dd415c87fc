//! File names for saved responses (RFC 6266).

use http::HeaderValue;
use zarrd_meta::NodePath;
use zarrd_wire::{array::Format, routes::encode};

/// The maximum length of a node's name in a file name, in bytes; file systems allow 255 for the full name.
const MAX_NAME: usize = 200;

/// Returns the value of `Content-Disposition`, with the array's name and the format as extension.
///
/// Formats that browsers display (JSON, CSV, images) are `inline`, the others `attachment`. Browsers, `curl -OJ` and
/// `wget --content-disposition` save both under this name.
pub(super) fn header(path: &NodePath, format: Format) -> Option<HeaderValue> {
    let disposition_type = match format {
        Format::Json | Format::Csv | Format::Png | Format::Xarray => "inline",
        Format::Raw | Format::Npy => "attachment",
    };
    let extension = if format == Format::Xarray { Format::Json } else { format };
    let file_name = [&file_name(path), ".", extension.name()].concat();
    if file_name.chars().all(is_plain) {
        return HeaderValue::try_from([disposition_type, "; filename=\"", &file_name, "\""].concat()).ok();
    }
    let ascii: String = file_name.chars().map(|character| if is_plain(character) { character } else { '_' }).collect();
    // Clients that do not support `filename*` use `filename`.
    let text = format!("{disposition_type}; filename=\"{ascii}\"; filename*=UTF-8''{}", encode(&file_name));
    HeaderValue::try_from(text).ok()
}

/// Returns the node's name as a safe file name: not hidden, bounded in length, and without directional characters.
fn file_name(path: &NodePath) -> String {
    let mut file_name: String =
        path.name().unwrap_or("array").chars().map(|c| if is_format_control(c) { '_' } else { c }).collect();
    if file_name.starts_with('.') {
        file_name.replace_range(..1, "_");
    }
    file_name.truncate(file_name.floor_char_boundary(MAX_NAME));
    file_name
}

/// True if a character needs no escape in the header, is allowed by file systems, and is not part of an escape that
/// some clients decode.
fn is_plain(character: char) -> bool {
    matches!(character, ' '..='~') && !matches!(character, '"' | '\\' | '%' | '/' | ':' | '*' | '?' | '<' | '>' | '|')
}

/// True if a character alters how its neighbours are displayed, which would let one name pass for another.
fn is_format_control(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn disposition(path: &str, format: Format) -> String {
        header(&NodePath::parse(path).unwrap(), format).unwrap().to_str().unwrap().to_owned()
    }

    #[test]
    fn names_of_files() {
        for (path, format, text) in [
            ("/lab/letters", Format::Json, "inline; filename=\"letters.json\""),
            ("/lab/letters", Format::Csv, "inline; filename=\"letters.csv\""),
            ("/lab/letters", Format::Png, "inline; filename=\"letters.png\""),
            ("/lab/letters", Format::Raw, "attachment; filename=\"letters.raw\""),
            ("/lab/a b.zarr", Format::Npy, "attachment; filename=\"a b.zarr.npy\""),
            ("/", Format::Npy, "attachment; filename=\"array.npy\""),
            ("/.profile", Format::Npy, "attachment; filename=\"_profile.npy\""),
        ] {
            assert_eq!(disposition(path, format), text);
        }
    }

    #[test]
    fn special_characters_are_escaped() {
        for (path, text) in [
            ("/é", "attachment; filename=\"_.npy\"; filename*=UTF-8''%C3%A9.npy"),
            ("/a\"; x=\"b", "attachment; filename=\"a_; x=_b.npy\"; filename*=UTF-8''a%22%3B%20x%3D%22b.npy"),
            ("/a\\", "attachment; filename=\"a_.npy\"; filename*=UTF-8''a%5C.npy"),
            ("/a%41:b", "attachment; filename=\"a_41_b.npy\"; filename*=UTF-8''a%2541%3Ab.npy"),
            ("/a\u{202e}gpj", "attachment; filename=\"a_gpj.npy\""),
        ] {
            assert_eq!(disposition(path, Format::Npy), text);
        }
        let long = disposition(&format!("/{}", "é".repeat(300)), Format::Npy);
        assert_eq!(long.matches("%C3%A9").count(), MAX_NAME / 2);
    }
}
