//! Elements on their way down.

use std::time::Duration;

use client::{
    ArrayClient, ArrayError, Dialect, Element, Elements, NodePath, ReadRequest, Retries, Timeouts, TransportError,
    select,
};
use futures::StreamExt;
use store::Version;

use crate::server::{ETAG, Server, Step, answer, head, problem};

fn path() -> NodePath {
    NodePath::parse("/a b/c").unwrap()
}

/// An answer of elements: all but its length.
fn elements_head(data_type: &str, shape: &str) -> String {
    let described = [format!("Zarr-Data-Type: {data_type}"), format!("Zarr-Shape: {shape}")];
    let [data_type, shape] = &described;
    head(
        200,
        &[data_type, shape, "Zarr-Dialect: v3", "Content-Type: application/octet-stream", &format!("ETag: {ETAG}")],
    )
}

/// Elements whose bytes are those of a text.
fn elements(data_type: &str, shape: &str, content: &str) -> String {
    format!("{}Content-Length: {}\r\n\r\n{content}", elements_head(data_type, shape), content.len())
}

fn remade(headers: &str, content: &str) -> Step {
    Step::SayAndClose(elements("uint8", "4", content).replace("Zarr-Dialect", headers))
}

async fn numbers<T: Element>(step: String) -> Result<Elements<Vec<T>>, ArrayError> {
    let server = Server::play([Step::Say(step)]).await;
    server.arrays().read_as(&path(), select![]).await
}

#[tokio::test]
async fn what_is_asked() {
    let server = Server::play(vec![Step::Say(elements("uint8", "2", "ab")); 7]).await;
    let arrays = server.arrays();
    let long = vec![7; 3000];
    let requests: [ReadRequest; 6] = [
        select![].into(),
        select![0..10, ..; 2, -1, [1, 5]].into(),
        select![long.clone()].into(),
        ReadRequest::Points(vec![vec![0, 1], vec![5, -1]]),
        ReadRequest::Stack(vec![select![0..2], select![..; -1]]),
        select![..].into(),
    ];
    for request in requests {
        let found = arrays.read(&path(), request).await.unwrap();
        assert_eq!(found.content, "ab");
    }
    arrays.of_dialect(Dialect::Draft).read(&NodePath::root(), select![3]).await.unwrap();
    let told: Vec<_> = server.requests().into_iter().map(|request| request.line).collect();
    let at = "/mount/array/a%20b/c";
    assert_eq!(
        told,
        [
            format!("GET {at}?format=raw"),
            format!("GET {at}?select=0%3A10%2C%3A%3A2%2C-1%2C%281%2C5%29&format=raw"),
            format!("POST {at}?read&format=raw"),
            format!("POST {at}?read&format=raw"),
            format!("POST {at}?read&format=raw"),
            format!("GET {at}?select=%3A&format=raw"),
            "GET /mount/array/?select=3&format=raw&dialect=draft".to_owned(),
        ]
    );
    for (request, body) in server.requests()[2..5].iter().zip([
        ReadRequest::from(select![long]),
        ReadRequest::Points(vec![vec![0, 1], vec![5, -1]]),
        ReadRequest::Stack(vec![select![0..2], select![..; -1]]),
    ]) {
        assert_eq!(ReadRequest::from_json(&request.body).unwrap(), body);
        assert_eq!(request.header("content-type"), Some("application/json"));
        assert_eq!(request.header("accept-encoding"), Some("identity"));
    }
}

#[tokio::test]
async fn what_elements_are() {
    let names = "Zarr-Dimension-Names: [\"y\",null]\r\nZarr-Dialect";
    let text = elements("numpy.datetime64[10us]", "0,3", "").replace("Zarr-Dialect", names);
    let server = Server::play([Step::Say(text)]).await;
    let found = server.arrays().read(&path(), select![]).await.unwrap().description;
    assert_eq!((found.shape.as_slice(), found.elements()), (&[0, 3][..], Some(0)));
    assert_eq!(found.data_type.as_deref(), Some("numpy.datetime64[10us]"));
    assert_eq!(found.dimension_names, [Some("y".to_owned()), None]);
    assert_eq!((found.dialect, found.bytes), (Dialect::V3, Some(0)));
    assert_eq!(found.version, Some(Version::from_u128(42)));
}

#[tokio::test]
async fn typed_elements() {
    assert_eq!(numbers::<u16>(elements("uint16", "2", "abcd")).await.unwrap().content, [0x6261, 0x6463]);
    assert_eq!(numbers::<u32>(elements("uint32", "", "abcd")).await.unwrap().content, [0x6463_6261]);
    assert!(numbers::<i8>(elements("int8", "2,0", "")).await.unwrap().content.is_empty());
    for data_type in ["int16", "numpy.datetime64[s]", "uint32"] {
        match numbers::<u16>(elements(data_type, "2", "abcd")).await.unwrap_err() {
            ArrayError::DataType { expected: "uint16", found } => assert_eq!(found.as_deref(), Some(data_type)),
            other => panic!("{other:?}"),
        }
    }
    let error = numbers::<u16>(elements("uint16", "3", "abcd")).await.unwrap_err();
    assert!(matches!(error, ArrayError::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn strings() {
    let content = "\u{2}\0\0\0\u{2}\0\0\0é\u{0}\0\0\0";
    let server =
        Server::play([Step::Say(elements("string", "1,2", content)), Step::Say(elements("bytes", "2", content))]);
    let arrays = server.await.arrays();
    let found = arrays.read(&path(), select![]).await.unwrap();
    assert_eq!(found.texts().unwrap(), ["é", ""]);
    let found = arrays.read(&path(), select![]).await.unwrap();
    assert_eq!(found.variable().unwrap(), ["é".as_bytes(), b""]);
    assert!(matches!(found.texts().unwrap_err(), ArrayError::DataType { expected: "string", .. }));
    for wrong in ["", "\u{2}\0\0\0", "\u{3}\0\0\0", "\u{2}\0\0\0\u{3}\0\0\0é\0\0\0\0", "\u{2}\0\0\0\0\0\0\0\0\0\0\0x"]
    {
        let server = Server::play([Step::Say(elements("string", "2", wrong))]).await;
        let error = server.arrays().read(&path(), select![]).await.unwrap().texts().unwrap_err();
        assert!(matches!(error, ArrayError::Protocol { .. }), "{wrong:?}: {error:?}");
    }
}

#[cfg(feature = "ndarray")]
#[tokio::test]
async fn arrays_of_ndarray() {
    let found = numbers::<u8>(elements("uint8", "2,3", "abcdef")).await.unwrap().into_ndarray().unwrap();
    assert_eq!((found.shape(), found[[1, 0]]), (&[2, 3][..], b'd'));
    let found = numbers::<u8>(elements("uint8", "", "a")).await.unwrap().into_ndarray().unwrap();
    assert_eq!((found.ndim(), found.first()), (0, Some(&b'a')));
    let huge = numbers::<u8>(elements("uint8", "0,18446744073709551615", "")).await.unwrap();
    assert!(huge.into_ndarray().is_err());
}

#[tokio::test]
async fn what_breaks_off_is_read_anew() {
    let broken = elements("uint8", "4", "ab").replace("Content-Length: 2", "Content-Length: 4");
    let busy = problem(503, "busy", &["Retry-After: 0"], "");
    let steps = [Step::SayAndClose(broken.clone()), Step::Say(busy), Step::Say(elements("uint8", "4", "wxyz"))];
    let server = Server::play(steps).await;
    assert_eq!(server.arrays().read_as::<u8>(&path(), select![]).await.unwrap().content, b"wxyz");

    // A chunked answer has no stated length, but an end.
    let chunked = format!("{}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", elements_head("string", "4"));
    for (broken, all) in [(broken, Some(4)), (chunked, None)] {
        let server = Server::play(vec![Step::SayAndClose(broken); 3]).await;
        match server.arrays().read(&path(), select![]).await.unwrap_err() {
            ArrayError::Broken { received, expected, .. } => assert_eq!((received, expected), (2, all)),
            other => panic!("{other:?}"),
        }
        assert_eq!(server.requests().len(), 3, "one, and two that are made again");
    }
}

#[tokio::test]
async fn a_stream_that_breaks_off_says_how_much_came() {
    let broken = elements("uint8", "9", "abcd").replace("Content-Length: 4", "Content-Length: 9");
    let server = Server::play([Step::Close, Step::SayAndClose(broken), Step::Say(elements("uint8", "2", "yz"))]).await;
    let mut stream = server.arrays().stream(&path(), select![]).await.unwrap();
    assert_eq!(stream.description().shape, [9]);
    let mut came = Vec::new();
    let error = loop {
        match stream.next().await.unwrap() {
            Ok(piece) => came.extend_from_slice(&piece),
            Err(error) => break error,
        }
    };
    assert_eq!(came, b"abcd");
    assert!(matches!(error, ArrayError::Broken { received: 4, expected: Some(9), .. }), "{error:?}");
    assert_eq!(error.to_string(), "the elements broke off after 4 bytes of 9");
    assert!(stream.next().await.is_none());
    assert_eq!(server.requests().len(), 2, "what was given out cannot be taken back");

    let pieces: Vec<_> = server.arrays().stream(&path(), select![]).await.unwrap().collect().await;
    assert_eq!(pieces.into_iter().map(Result::unwrap).collect::<Vec<_>>().concat(), b"yz");
}

#[tokio::test]
async fn elements_that_are_known() {
    let unchanged = head(304, &[&format!("ETag: {ETAG}")]) + "\r\n";
    let server = Server::play([
        Step::Say(unchanged.clone()),
        Step::Say(elements("uint8", "1", "a")),
        Step::Say(problem(412, "precondition-failed", &[], "")),
        Step::Say(unchanged),
        Step::Say(problem(412, "precondition-failed", &[], "")),
    ])
    .await;
    let (arrays, known) = (server.arrays(), Version::from_u128(42));
    assert_eq!(arrays.read_unless(&path(), select![0], known).await.unwrap(), None);
    assert_eq!(arrays.read_unless(&path(), select![0], known).await.unwrap().unwrap().content, "a");
    let points = ReadRequest::Points(vec![vec![0]]);
    assert_eq!(arrays.read_unless(&path(), points.clone(), known).await.unwrap(), None);
    assert!(server.requests().iter().all(|request| request.header("if-none-match") == Some(ETAG)));

    // Where nothing was said to be known, neither is an answer.
    let error = arrays.read(&path(), select![0]).await.unwrap_err();
    assert!(matches!(error, ArrayError::Protocol { .. }), "{error:?}");
    let error = arrays.read(&path(), points).await.unwrap_err();
    assert!(matches!(error, ArrayError::PreconditionFailed { current: None, .. }), "{error:?}");
}

#[tokio::test]
async fn descriptions() {
    let server = Server::play([
        Step::Say(format!("{}Content-Length: 80\r\n\r\n", elements_head("float64", "2,5"))),
        Step::Say(format!("{}\r\n", elements_head("string", "7"))),
        Step::Say(head(404, &["Content-Type: application/problem+json", "Content-Length: 99"]) + "\r\n"),
        Step::Say(problem(404, "no-such-node", &[], r#","path":"/a b/c""#)),
        Step::Say(elements("uint8", "2", "ab")),
    ])
    .await;
    let arrays = server.arrays();
    let found = arrays.describe(&path(), select![1..3]).await.unwrap();
    assert_eq!((found.shape, found.bytes), (vec![2, 5], Some(80)));
    assert_eq!(arrays.describe(&path(), select![]).await.unwrap().bytes, None);
    let error = arrays.describe(&path(), select![]).await.unwrap_err();
    assert!(matches!(&error, ArrayError::NoSuchNode { path: told } if *told == path()), "{error:?}");
    // Too long for a URL, and a `HEAD` has no body.
    assert_eq!(arrays.describe(&path(), select![vec![0; 3000]]).await.unwrap().shape, [2]);
    let methods: Vec<_> =
        server.requests().iter().map(|request| request.line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(methods, ["HEAD", "HEAD", "HEAD", "GET", "POST"]);
}

#[tokio::test]
async fn answers_that_lie_are_errors() {
    for step in [
        remade("X-Dialect", "abcd"),
        remade("Content-Encoding: gzip\r\nZarr-Dialect", "abcd"),
        remade("Zarr-Dimension-Names: [\"x\",\"y\"]\r\nZarr-Dialect", "abcd"),
        remade("Zarr-Dimension-Names: x\r\nZarr-Dialect", "abcd"),
        Step::SayAndClose(elements("uint8", "4,x", "abcd")),
        Step::SayAndClose(elements("uint8", "4", "abcd").replace("Zarr-Shape", "X-Shape")),
        Step::SayAndClose(answer(204, &[], "")),
        Step::SayAndClose(answer(206, &[], "abcd")),
    ] {
        let server = Server::play([step]).await;
        let error = server.arrays().read(&path(), select![]).await.unwrap_err();
        assert!(matches!(error, ArrayError::Protocol { .. }), "{error:?}");
        assert_eq!(server.requests().len(), 1, "a lie is not asked for again");
    }
    let endless = format!("{}Transfer-Encoding: chunked\r\n\r\n", elements_head("uint8", "4"));
    let server = Server::play([Step::Endless(endless)]).await;
    let error = server.arrays().read_as::<u8>(&path(), select![]).await.unwrap_err();
    assert!(matches!(error, ArrayError::Protocol { .. }), "{error:?}");
}

#[tokio::test]
async fn who_is_not_a_server_of_arrays() {
    for (step, expected) in [
        (answer(401, &[], ""), "the server asks for a token"),
        (answer(403, &[], ""), "the server does not allow this: it gave no reason"),
        (answer(404, &[], "no"), "the server failed (status 404, request req-7): "),
        (answer(301, &["Location: http://elsewhere/"], ""), "the server failed (status 301, request req-7): "),
        (problem(404, "not-found", &[], ""), "the server failed (status 404, request req-7): t"),
    ] {
        let server = Server::play([Step::Say(step)]).await;
        assert_eq!(server.arrays().read(&path(), select![]).await.unwrap_err().to_string(), expected);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn a_server_that_is_busy_is_left_alone_for_as_long_as_it_asks() {
    let busy = |seconds| Step::Say(problem(503, "busy", &[&format!("Retry-After: {seconds}")], ""));
    let server = Server::play([busy(3600)]).await;
    match server.arrays().read(&path(), select![]).await.unwrap_err() {
        ArrayError::Busy { retry_after } => assert_eq!(retry_after, Some(Duration::from_secs(3600))),
        other => panic!("{other:?}"),
    }
    assert_eq!(server.requests().len(), 1, "an hour is not waited for");
}

#[tokio::test]
async fn reading_goes_on_in_a_task_of_its_own() {
    let server = Server::play(vec![Step::Say(elements("uint8", "2", "ab")); 4]).await;
    let arrays = server.arrays();
    let task = tokio::spawn(async move {
        let stream = arrays.stream(&path(), select![]).await.unwrap();
        let known = stream.description().version.unwrap();
        arrays.read(&path(), select![]).await.unwrap();
        arrays.read_unless(&path(), select![], known).await.unwrap().unwrap();
        arrays.read_as::<u8>(&path(), select![]).await.unwrap().content
    });
    assert_eq!(task.await.unwrap(), b"ab");
}

#[tokio::test]
async fn a_server_that_does_not_answer() {
    let server = Server::play([Step::Hang]).await;
    let timeouts = Timeouts { idle: Duration::from_millis(100), ..Timeouts::default() };
    let store = server.builder().timeouts(timeouts).retries(Retries::none()).build().unwrap();
    let error = ArrayClient::from(store.connection()).read(&path(), select![]).await.unwrap_err();
    assert!(matches!(error, ArrayError::Transport(TransportError::Idle(_))), "{error:?}");
}
