//! `multipart/form-data` bodies, whose parts are read one after the other.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use futures::{Stream, StreamExt, ready};
use memchr::memmem;
use multer::{Field, Multipart};
use parking_lot::Mutex;
use zarrd_store::ByteStream;
use zarrd_wire::elements::npz::{MAX_MEMBER_NAME, MAX_MEMBERS};

use super::decode::{DecodeError, FormError, MAX_BOUNDARY, MAX_HEADERS};

/// Reads the parts of a form.
pub(super) struct FormReader {
    form: Multipart<'static>,
    /// The part that is being read.
    field: Option<Field<'static>>,
    /// The number of parts that began.
    parts: usize,
    source: Arc<Mutex<FormSource>>,
}

/// The body of a form, which has to end with it.
///
/// `multer` takes what its stream has, as long as it has some, before it looks at it. So the stream has one piece at a
/// time, and only if what came before it is not enough: memory is that of two pieces.
struct FormSource {
    body: ByteStream,
    end: FormEnd,
    /// True if the next piece is due.
    is_due: bool,
    /// The bytes of the step of the reader, while the headers of a part are read, whose length is limited.
    of_headers: Option<u64>,
}

/// The stream that `multer` reads.
struct FormStream(Arc<Mutex<FormSource>>);

/// Finds the end of a form.
struct FormEnd {
    /// The last delimiter, with the line break before it.
    delimiter: Vec<u8>,
    /// The last bytes, in which the delimiter may begin.
    tail: Vec<u8>,
    /// The bytes after the delimiter; `None` before it.
    after: Option<Vec<u8>>,
}

impl FormReader {
    /// A reader of the form in a body.
    pub(super) fn new(body: ByteStream, boundary: Option<String>) -> Result<Self, FormError> {
        let boundary = boundary.filter(|boundary| (1..=MAX_BOUNDARY).contains(&boundary.len()));
        let boundary = boundary.ok_or(FormError::Boundary)?;
        let source = FormSource { body, end: FormEnd::new(&boundary), is_due: false, of_headers: None };
        let source = Arc::new(Mutex::new(source));
        let form = Multipart::new(FormStream(source.clone()), boundary);
        Ok(Self { form, field: None, parts: 0, source })
    }

    /// The name of the next part; `None` at the end of the body.
    pub(super) async fn next(&mut self) -> Result<Option<String>, DecodeError> {
        // What a decoder left is received too.
        while self.data().await?.is_some() {}
        self.field = None;
        self.source.lock().start(Some(0));
        let Some(field) = self.form.next_field().await.map_err(decode_error)? else {
            while poll_fn(|context| self.source.lock().poll_piece(context)).await.transpose()?.is_some() {}
            return Ok(None);
        };
        self.parts = self.parts.saturating_add(1);
        if self.parts > MAX_MEMBERS {
            return Err(FormError::TooMany.into());
        }
        let name = field.name().filter(|name| name.len() <= MAX_MEMBER_NAME).map(str::to_owned);
        self.field = Some(field);
        Ok(Some(name.ok_or(FormError::Name { number: self.parts })?))
    }

    /// The next bytes of the part that began last; `None` at its end.
    pub(super) async fn data(&mut self) -> Result<Option<Bytes>, DecodeError> {
        let Some(field) = &mut self.field else { return Ok(None) };
        self.source.lock().start(None);
        field.chunk().await.map_err(decode_error)
    }
}

/// The error of a form, or of the body that it is in.
fn decode_error(error: multer::Error) -> DecodeError {
    match error {
        multer::Error::StreamReadFailed(cause) => match cause.downcast::<DecodeError>() {
            Ok(error) => *error,
            Err(cause) => FormError::Malformed(multer::Error::StreamReadFailed(cause)).into(),
        },
        other => FormError::Malformed(other).into(),
    }
}

impl FormSource {
    /// Starts a step of the reader, which first parses what it has.
    fn start(&mut self, of_headers: Option<u64>) {
        (self.is_due, self.of_headers) = (false, of_headers);
    }

    /// The next piece of the body, whose end is checked.
    fn poll_piece(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, DecodeError>>> {
        Poll::Ready(match ready!(self.body.poll_next_unpin(context)) {
            Some(Ok(piece)) => Some(self.end.push(&piece).map(|()| piece).map_err(DecodeError::from)),
            Some(Err(error)) => Some(Err(error.into())),
            None => None,
        })
    }
}

impl Stream for FormStream {
    type Item = Result<Bytes, DecodeError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut source = self.0.lock();
        if !source.is_due {
            source.is_due = true;
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        if source.of_headers.is_some_and(|bytes| bytes > MAX_HEADERS) {
            return Poll::Ready(Some(Err(FormError::Headers.into())));
        }
        let piece = ready!(source.poll_piece(context));
        source.is_due = false;
        if let (Some(bytes), Some(Ok(piece))) = (&mut source.of_headers, &piece) {
            *bytes = bytes.saturating_add(piece.len() as u64);
        }
        Poll::Ready(piece)
    }
}

impl FormEnd {
    fn new(boundary: &str) -> Self {
        // The first delimiter has no line break before it.
        Self { delimiter: format!("\r\n--{boundary}--").into_bytes(), tail: b"\r\n".to_vec(), after: None }
    }

    /// Receives the next bytes of the body. Fails if something follows the form, other than a line break.
    fn push(&mut self, piece: &[u8]) -> Result<(), FormError> {
        let rest = match &self.after {
            Some(_) => piece,
            None => match self.find(piece) {
                Some(rest) => rest,
                None => return Ok(()),
            },
        };
        let after = self.after.get_or_insert_default();
        after.extend_from_slice(rest.get(..rest.len().min(3)).unwrap_or_default());
        if b"\r\n".starts_with(after) { Ok(()) } else { Err(FormError::Trailing) }
    }

    /// The bytes of a piece after the delimiter, if it ends there.
    fn find<'p>(&mut self, piece: &'p [u8]) -> Option<&'p [u8]> {
        let most = self.delimiter.len().saturating_sub(1);
        let before = self.tail.len();
        self.tail.extend_from_slice(piece.get(..most.min(piece.len())).unwrap_or_default());
        let across = memmem::find(&self.tail, &self.delimiter).map(|at| at.saturating_add(self.delimiter.len()));
        let end = match across {
            Some(end) => Some(end.saturating_sub(before)),
            None => memmem::find(piece, &self.delimiter).map(|at| at.saturating_add(self.delimiter.len())),
        };
        if let Some(end) = end {
            return piece.get(end..);
        }
        if piece.len() >= most {
            self.tail.clear();
            self.tail.extend_from_slice(piece.get(piece.len().saturating_sub(most)..).unwrap_or_default());
        } else {
            self.tail.drain(..self.tail.len().saturating_sub(most));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use futures::stream;

    use super::*;

    const BODY: &str = "--b\r\nContent-Disposition: form-data; name=\"x\"\r\n\r\n1\r\n--\r\n2\r\n--b\r\n\
                        Content-Disposition: form-data; name=y; filename=\"y.npy\"\r\nContent-Type: a/b\r\n\r\n\r\n--b--";

    /// The parts of a body that arrives in pieces of a size.
    async fn parts(body: impl Into<Vec<u8>>, size: usize) -> Result<Vec<(String, Vec<u8>)>, DecodeError> {
        let body = body.into();
        let pieces: Vec<_> = body.chunks(size).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        let mut reader = FormReader::new(stream::iter(pieces).boxed(), Some("b".to_owned()))?;
        let mut found = Vec::new();
        while let Some(name) = reader.next().await? {
            let mut content = Vec::new();
            while let Some(data) = reader.data().await? {
                content.extend_from_slice(&data);
            }
            found.push((name, content));
        }
        Ok(found)
    }

    #[tokio::test]
    async fn parts_are_read_in_pieces_of_any_size() {
        let expected = vec![("x".to_owned(), b"1\r\n--\r\n2".to_vec()), ("y".to_owned(), Vec::new())];
        for size in 1..=BODY.len() {
            for end in ["", "\r\n"] {
                assert_eq!(parts(format!("{BODY}{end}"), size).await.unwrap(), expected, "{size}");
            }
            assert_eq!(parts(format!("preamble\r\n{BODY}"), size).await.unwrap(), expected, "{size}");
            assert_eq!(parts("--b--\r\n", size).await.unwrap(), []);
        }
    }

    #[tokio::test]
    async fn forms_that_end_too_early_or_too_late_are_rejected() {
        for size in [1, 3, 7, 1000] {
            for len in 0..BODY.len() {
                assert!(
                    matches!(parts(&BODY.as_bytes()[..len], size).await, Err(DecodeError::Form(_))),
                    "{len} in {size}"
                );
            }
            for rest in ["x", "\r\nx", "\r\n\r\n", "\n", "\r\n--b--", "--b--"] {
                let found = parts(format!("{BODY}{rest}"), size).await;
                assert!(matches!(found, Err(DecodeError::Form(FormError::Trailing))), "{rest:?}: {found:?}");
            }
        }
    }

    #[tokio::test]
    async fn parts_without_names_and_long_headers_are_rejected() {
        let part = |header: &str| format!("--b\r\n{header}\r\n\r\n1\r\n--b--\r\n");
        for header in ["Content-Type: a/b", "Content-Disposition: form-data; filename=\"name\""] {
            let found = parts(part(header), 5).await;
            assert!(matches!(found, Err(DecodeError::Form(FormError::Name { number: 1 }))), "{found:?}");
        }
        let name = "n".repeat(MAX_MEMBER_NAME + 1);
        let found = parts(part(&format!("Content-Disposition: form-data; name={name}")), 64).await;
        assert!(matches!(found, Err(DecodeError::Form(FormError::Name { .. }))), "{found:?}");
        for long in [part(&format!("A: {}", "b".repeat(1 << 20))), "p".repeat(1 << 20)] {
            let found = parts(long, 100).await;
            assert!(matches!(found, Err(DecodeError::Form(FormError::Headers))), "{found:?}");
        }
        let many = "--b\r\nContent-Disposition: form-data; name=x\r\n\r\n\r\n".repeat(MAX_MEMBERS + 1);
        assert!(matches!(parts(many, 4096).await, Err(DecodeError::Form(FormError::TooMany))));
    }

    #[tokio::test]
    async fn little_is_taken_in_advance() {
        let taken = Arc::new(Mutex::new(0));
        let counter = taken.clone();
        let head = "--b\r\nContent-Disposition: form-data; name=x\r\n\r\n1\r\n".repeat(50);
        let pieces = stream::iter([head].into_iter().chain((0..1000).map(|_| "y".repeat(1000)))).map(move |piece| {
            *counter.lock() += 1;
            Ok(Bytes::from(piece))
        });
        let mut reader = FormReader::new(pieces.boxed(), Some("b".to_owned())).unwrap();
        for _ in 0..50 {
            assert_eq!(reader.next().await.unwrap().as_deref(), Some("x"));
        }
        assert!(*taken.lock() <= 2, "the parts are in the first piece");
        for number in 1..=20 {
            assert!(reader.data().await.unwrap().is_some());
            assert!(*taken.lock() <= number + 2, "{number}");
        }
    }
}
