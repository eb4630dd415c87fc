//! The web page that shows hierarchies and arrays: its built files, embedded, and compressed when they are first asked
//! for.
//!
//! The sources are in `web/`, in TypeScript; `npm ci && npm run build` there writes `dist/`, which is committed, so that
//! Rust alone builds the server. The page is static apart from one template, the document, in which the server enters
//! the beginning of its URLs.
//!
//! Each file has a name with a hash of its content, under which it never changes and may be cached for good.

use std::{
    fmt,
    io::{self, Write},
    sync::{LazyLock, OnceLock},
};

use bytes::Bytes;
use flate2::{Compression, write::GzEncoder};
use xxhash_rust::xxh3::xxh3_64;

/// The policy of the document: its own script, style, icon and requests, and nothing else; strings never become markup
/// or code.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; \
     connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
     require-trusted-types-for 'script'; trusted-types 'none'";

const DOCUMENT: &str = include_str!("../dist/index.html");
/// The level of zstd: compression happens at most once, and takes some 30 ms.
const ZSTD_LEVEL: i32 = 16;

static FILES: LazyLock<[File; 3]> = LazyLock::new(|| {
    [
        File::new("page", "js", "text/javascript; charset=utf-8", include_bytes!("../dist/page.js")),
        File::new("page", "css", "text/css; charset=utf-8", include_bytes!("../dist/page.css")),
        File::new("icon", "svg", "image/svg+xml", include_bytes!("../dist/icon.svg")),
    ]
});

/// A file of the page.
#[derive(Debug)]
pub struct File {
    /// The name, with a hash of the content.
    pub name: String,
    /// The media type.
    pub media_type: &'static str,
    /// The content.
    pub identity: Bytes,
    gzip: OnceLock<Bytes>,
    zstd: OnceLock<Bytes>,
}

impl File {
    fn new(stem: &str, extension: &str, media_type: &'static str, content: &'static [u8]) -> Self {
        Self {
            name: format!("{stem}-{:016x}.{extension}", xxh3_64(content)),
            media_type,
            identity: Bytes::from_static(content),
            gzip: OnceLock::new(),
            zstd: OnceLock::new(),
        }
    }

    /// The content, compressed with gzip. Takes tens of milliseconds the first time.
    pub fn gzip(&self) -> &Bytes {
        self.gzip.get_or_init(|| {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::best());
            self.compressed(gzip.write_all(&self.identity).and_then(|()| gzip.finish()))
        })
    }

    /// The content, compressed with Zstandard. Takes tens of milliseconds the first time.
    pub fn zstd(&self) -> &Bytes {
        self.zstd.get_or_init(|| self.compressed(zstd::bulk::compress(&self.identity, ZSTD_LEVEL)))
    }

    /// Writing to memory cannot fail; if it did, the file would be sent as it is.
    fn compressed(&self, result: io::Result<Vec<u8>>) -> Bytes {
        result.map_or_else(|_| self.identity.clone(), Bytes::from)
    }
}

/// The files of the page.
pub fn files() -> &'static [File] {
    FILES.as_slice()
}

/// The file of a name.
pub fn file(name: &str) -> Option<&'static File> {
    files().iter().find(|file| file.name == name)
}

/// The document. The URLs of files begin with `files`, such as `/assets/`, and those of requests with `api`, which is
/// empty or begins with a slash. S3 clients use the URL `s3`, such as `http://:8002` for a port of the page's host; it is
/// empty if there is none.
pub fn document(files: &str, api: &str, s3: &str) -> String {
    let [script, style, icon] = &*FILES;
    let url = |file: &File| Escaped(&format!("{files}{}", file.name)).to_string();
    DOCUMENT
        .replace("{{script}}", &url(script))
        .replace("{{style}}", &url(style))
        .replace("{{icon}}", &url(icon))
        .replace("{{api}}", &Escaped(api).to_string())
        .replace("{{s3}}", &Escaped(s3).to_string())
        .replace("{{version}}", env!("CARGO_PKG_VERSION"))
}

/// Escapes a text for an attribute.
struct Escaped<'t>(&'t str);

impl fmt::Display for Escaped<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chars().try_for_each(|character| match character {
            '&' => f.write_str("&amp;"),
            '<' => f.write_str("&lt;"),
            '>' => f.write_str("&gt;"),
            '"' => f.write_str("&quot;"),
            '{' => f.write_str("&#123;"),
            _ => fmt::Write::write_char(f, character),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn document_names_its_files_and_its_base() {
        let document = document("/lab/assets/", "/lab/s/<\"&{{style}}>", "http://:8002");
        for file in files() {
            assert_eq!(document.matches(&format!("\"/lab/assets/{}\"", file.name)).count(), 1, "{}", file.name);
        }
        assert!(document.contains("\"/lab/s/&lt;&quot;&amp;&#123;&#123;style}}&gt;\""), "{document}");
        assert!(document.contains("name=\"zarrd-s3\" content=\"http://:8002\""), "{document}");
        assert!(!document.contains("{{"), "{document}");
    }

    #[test]
    fn compressed_files_have_the_same_content() {
        for file in files() {
            assert_eq!(zstd::bulk::decompress(file.zstd(), 1 << 22).unwrap(), file.identity, "{}", file.name);
            let mut gzip = Vec::new();
            std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&file.gzip()[..]), &mut gzip).unwrap();
            assert_eq!(gzip, file.identity, "{}", file.name);
            assert!(self::file(&file.name).is_some_and(|found| std::ptr::eq(found, file)));
        }
        assert!(file("page.js").is_none());
    }

    #[test]
    fn page_is_within_the_limit_of_its_build() {
        let build = include_str!("../web/build.mjs");
        let kib = build.split_once("const LIMIT = ").and_then(|(_, rest)| rest.split_once(" << 10;")).unwrap().0;
        let size: usize = files().iter().map(|file| file.gzip().len()).sum();
        assert!(size + DOCUMENT.len() <= kib.parse::<usize>().unwrap() << 10, "{size}");
    }
}
