//! Reads of elements.

use std::time::Duration;

use futures::StreamExt;
use zarrd_client::{
    ArrayClient, ArrayError, Dialect, Element, Elements, NodePath, ReadRequest, RemoteError, Retries, Timeouts,
    TransportError, select,
};
use zarrd_store::Version;

use crate::scripted::scripted_server::{ETAG, ScriptedServer, Step, head, problem, response};

fn path() -> NodePath {
    NodePath::parse("/a b/c").unwrap()
}

/// The response head of elements, without their length.
fn elements_head(data_type: &str, shape: &str) -> String {
    let described = [format!("Zarr-Data-Type: {data_type}"), format!("Zarr-Shape: {shape}")];
    let [data_type, shape] = &described;
    head(
        200,
        &[data_type, shape, "Zarr-Dialect: v3", "Content-Type: application/octet-stream", &format!("ETag: {ETAG}")],
    )
}

/// A response whose elements are the bytes of a text.
fn elements(data_type: &str, shape: &str, content: &str) -> String {
    format!("{}Content-Length: {}\r\n\r\n{content}", elements_head(data_type, shape), content.len())
}

fn with_header(header: &str, content: &str) -> Step {
    Step::RespondAndClose(elements("uint8", "4", content).replace("Zarr-Dialect", header))
}

async fn numbers<T: Element>(step: String) -> Result<Elements<Vec<T>>, ArrayError> {
    let server = ScriptedServer::start([Step::Respond(step)]).await;
    server.arrays().read_as(&path(), select![]).await
}

#[tokio::test]
async fn short_selections_are_sent_in_the_url() {
    let server = ScriptedServer::start(vec![Step::Respond(elements("uint8", "2", "ab")); 7]).await;
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
        let result = arrays.read(&path(), request).await.unwrap();
        assert_eq!(result.content, "ab");
    }
    arrays.with_dialect(Dialect::Draft).read(&NodePath::root(), select![3]).await.unwrap();
    let lines: Vec<_> = server.requests().into_iter().map(|request| request.line).collect();
    let at = "/mount/array/a%20b/c";
    assert_eq!(
        lines,
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
async fn headers_describe_elements() {
    let names = "Zarr-Dimension-Names: [\"y\",null]\r\nZarr-Dialect";
    let text = elements("numpy.datetime64[10us]", "0,3", "").replace("Zarr-Dialect", names);
    let server = ScriptedServer::start([Step::Respond(text)]).await;
    let result = server.arrays().read(&path(), select![]).await.unwrap().description;
    assert_eq!((result.shape.as_slice(), result.elements()), (&[0, 3][..], Some(0)));
    assert_eq!(result.data_type.as_deref(), Some("numpy.datetime64[10us]"));
    assert_eq!(result.dimension_names, [Some("y".to_owned()), None]);
    assert_eq!((result.dialect, result.bytes), (Dialect::V3, Some(0)));
    assert_eq!(result.version, Some(Version::from_u128(42)));
}

#[tokio::test]
async fn elements_are_read_as_numbers() {
    assert_eq!(numbers::<u16>(elements("uint16", "2", "abcd")).await.unwrap().content, [0x6261, 0x6463]);
    assert_eq!(numbers::<u32>(elements("uint32", "", "abcd")).await.unwrap().content, [0x6463_6261]);
    assert!(numbers::<i8>(elements("int8", "2,0", "")).await.unwrap().content.is_empty());
    for data_type in ["int16", "numpy.datetime64[s]", "uint32"] {
        match numbers::<u16>(elements(data_type, "2", "abcd")).await.unwrap_err() {
            ArrayError::DataType { expected: "uint16", actual } => assert_eq!(actual.as_deref(), Some(data_type)),
            other => panic!("{other:?}"),
        }
    }
    let error = numbers::<u16>(elements("uint16", "3", "abcd")).await.unwrap_err();
    assert!(matches!(error, ArrayError::Remote(RemoteError::InvalidResponse { .. })), "{error:?}");
}

#[tokio::test]
async fn variable_length_elements_are_split() {
    let content = "\u{2}\0\0\0\u{2}\0\0\0é\u{0}\0\0\0";
    let server = ScriptedServer::start([
        Step::Respond(elements("string", "1,2", content)),
        Step::Respond(elements("bytes", "2", content)),
    ]);
    let arrays = server.await.arrays();
    let result = arrays.read(&path(), select![]).await.unwrap();
    assert_eq!(result.strings().unwrap(), ["é", ""]);
    let result = arrays.read(&path(), select![]).await.unwrap();
    assert_eq!(result.byte_strings().unwrap(), ["é".as_bytes(), b""]);
    assert!(matches!(result.strings().unwrap_err(), ArrayError::DataType { expected: "string", .. }));
    for wrong in ["", "\u{2}\0\0\0", "\u{3}\0\0\0", "\u{2}\0\0\0\u{3}\0\0\0é\0\0\0\0", "\u{2}\0\0\0\0\0\0\0\0\0\0\0x"]
    {
        let server = ScriptedServer::start([Step::Respond(elements("string", "2", wrong))]).await;
        let error = server.arrays().read(&path(), select![]).await.unwrap().strings().unwrap_err();
        assert!(matches!(error, ArrayError::Remote(RemoteError::InvalidResponse { .. })), "{wrong:?}: {error:?}");
    }
}

#[cfg(feature = "ndarray")]
#[tokio::test]
async fn elements_become_ndarrays() {
    let result = numbers::<u8>(elements("uint8", "2,3", "abcdef")).await.unwrap().into_ndarray().unwrap();
    assert_eq!((result.shape(), result[[1, 0]]), (&[2, 3][..], b'd'));
    let result = numbers::<u8>(elements("uint8", "", "a")).await.unwrap().into_ndarray().unwrap();
    assert_eq!((result.ndim(), result.first()), (0, Some(&b'a')));
    let huge = numbers::<u8>(elements("uint8", "0,18446744073709551615", "")).await.unwrap();
    assert!(huge.into_ndarray().is_err());
}

#[tokio::test]
async fn interrupted_reads_are_repeated() {
    let broken = elements("uint8", "4", "ab").replace("Content-Length: 2", "Content-Length: 4");
    let busy = problem(503, "busy", &["Retry-After: 0"], "");
    let steps =
        [Step::RespondAndClose(broken.clone()), Step::Respond(busy), Step::Respond(elements("uint8", "4", "wxyz"))];
    let server = ScriptedServer::start(steps).await;
    assert_eq!(server.arrays().read_as::<u8>(&path(), select![]).await.unwrap().content, b"wxyz");

    // A chunked response has no length, but an end.
    let chunked = format!("{}Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n", elements_head("string", "4"));
    for (broken, size) in [(broken, Some(4)), (chunked, None)] {
        let server = ScriptedServer::start(vec![Step::RespondAndClose(broken); 3]).await;
        match server.arrays().read(&path(), select![]).await.unwrap_err() {
            ArrayError::Interrupted { received, expected, .. } => assert_eq!((received, expected), (2, size)),
            other => panic!("{other:?}"),
        }
        assert_eq!(server.requests().len(), 3, "one request and two retries");
    }
}

#[tokio::test]
async fn interrupted_streams_fail_with_the_number_of_received_bytes() {
    let broken = elements("uint8", "9", "abcd").replace("Content-Length: 4", "Content-Length: 9");
    let server = ScriptedServer::start([
        Step::Close,
        Step::RespondAndClose(broken),
        Step::Respond(elements("uint8", "2", "yz")),
    ])
    .await;
    let mut stream = server.arrays().stream(&path(), select![]).await.unwrap();
    assert_eq!(stream.description().shape, [9]);
    let mut received = Vec::new();
    let error = loop {
        match stream.next().await.unwrap() {
            Ok(bytes) => received.extend_from_slice(&bytes),
            Err(error) => break error,
        }
    };
    assert_eq!(received, b"abcd");
    assert!(matches!(error, ArrayError::Interrupted { received: 4, expected: Some(9), .. }), "{error:?}");
    assert_eq!(error.to_string(), "the response was cut off after 4 bytes of 9");
    assert!(stream.next().await.is_none());
    assert_eq!(server.requests().len(), 2, "a stream is not retried");

    let buffers: Vec<_> = server.arrays().stream(&path(), select![]).await.unwrap().collect().await;
    assert_eq!(buffers.into_iter().map(Result::unwrap).collect::<Vec<_>>().concat(), b"yz");
}

#[tokio::test]
async fn unchanged_elements_are_not_returned() {
    let unchanged = head(304, &[&format!("ETag: {ETAG}")]) + "\r\n";
    let server = ScriptedServer::start([
        Step::Respond(unchanged.clone()),
        Step::Respond(elements("uint8", "1", "a")),
        Step::Respond(problem(412, "precondition-failed", &[], "")),
        Step::Respond(unchanged),
        Step::Respond(problem(412, "precondition-failed", &[], "")),
    ])
    .await;
    let (arrays, known) = (server.arrays(), Version::from_u128(42));
    assert_eq!(arrays.read_if_changed(&path(), select![0], known).await.unwrap(), None);
    assert_eq!(arrays.read_if_changed(&path(), select![0], known).await.unwrap().unwrap().content, "a");
    let points = ReadRequest::Points(vec![vec![0]]);
    assert_eq!(arrays.read_if_changed(&path(), points.clone(), known).await.unwrap(), None);
    assert!(server.requests().iter().all(|request| request.header("if-none-match") == Some(ETAG)));

    // Without a precondition neither status is expected.
    let error = arrays.read(&path(), select![0]).await.unwrap_err();
    assert!(matches!(error, ArrayError::Remote(RemoteError::InvalidResponse { .. })), "{error:?}");
    let error = arrays.read(&path(), points).await.unwrap_err();
    assert!(matches!(error, ArrayError::PreconditionFailed { current: None, .. }), "{error:?}");
}

#[tokio::test]
async fn descriptions_are_read_without_elements() {
    let server = ScriptedServer::start([
        Step::Respond(format!("{}Content-Length: 80\r\n\r\n", elements_head("float64", "2,5"))),
        Step::Respond(format!("{}\r\n", elements_head("string", "7"))),
        Step::Respond(head(404, &["Content-Type: application/problem+json", "Content-Length: 99"]) + "\r\n"),
        Step::Respond(problem(404, "no-such-node", &[], r#","path":"/a b/c""#)),
        Step::Respond(elements("uint8", "2", "ab")),
    ])
    .await;
    let arrays = server.arrays();
    let result = arrays.describe(&path(), select![1..3]).await.unwrap();
    assert_eq!((result.shape, result.bytes), (vec![2, 5], Some(80)));
    assert_eq!(arrays.describe(&path(), select![]).await.unwrap().bytes, None);
    let error = arrays.describe(&path(), select![]).await.unwrap_err();
    assert!(matches!(&error, ArrayError::NoSuchNode { path: missing } if *missing == path()), "{error:?}");
    // The selection is too long for a URL, and HEAD has no body.
    assert_eq!(arrays.describe(&path(), select![vec![0; 3000]]).await.unwrap().shape, [2]);
    let methods: Vec<_> =
        server.requests().iter().map(|request| request.line.split(' ').next().unwrap().to_owned()).collect();
    assert_eq!(methods, ["HEAD", "HEAD", "HEAD", "GET", "POST"]);
}

#[tokio::test]
async fn invalid_responses_are_protocol_errors() {
    for step in [
        with_header("X-Dialect", "abcd"),
        with_header("Content-Encoding: gzip\r\nZarr-Dialect", "abcd"),
        with_header("Zarr-Dimension-Names: [\"x\",\"y\"]\r\nZarr-Dialect", "abcd"),
        with_header("Zarr-Dimension-Names: x\r\nZarr-Dialect", "abcd"),
        Step::RespondAndClose(elements("uint8", "4,x", "abcd")),
        Step::RespondAndClose(elements("uint8", "4", "abcd").replace("Zarr-Shape", "X-Shape")),
        Step::RespondAndClose(response(204, &[], "")),
        Step::RespondAndClose(response(206, &[], "abcd")),
    ] {
        let server = ScriptedServer::start([step]).await;
        let error = server.arrays().read(&path(), select![]).await.unwrap_err();
        assert!(matches!(error, ArrayError::Remote(RemoteError::InvalidResponse { .. })), "{error:?}");
        assert_eq!(server.requests().len(), 1, "protocol errors are not retried");
    }
    let endless = format!("{}Transfer-Encoding: chunked\r\n\r\n", elements_head("uint8", "4"));
    let server = ScriptedServer::start([Step::RespondEndlessly(endless)]).await;
    let error = server.arrays().read_as::<u8>(&path(), select![]).await.unwrap_err();
    assert!(matches!(error, ArrayError::Remote(RemoteError::InvalidResponse { .. })), "{error:?}");
}

#[tokio::test]
async fn responses_without_a_problem_become_errors_by_status() {
    for (step, expected) in [
        (response(401, &[], ""), "the server requires a valid token: no reason given"),
        (response(403, &[], ""), "the server does not permit this: no reason given"),
        (response(404, &[], "no"), "the server responded with status 404 (request req-7)"),
        (response(301, &["Location: http://elsewhere/"], ""), "the server responded with status 301 (request req-7)"),
        (problem(404, "not-found", &[], ""), "the server responded with status 404 (request req-7): t"),
    ] {
        let server = ScriptedServer::start([Step::Respond(step)]).await;
        assert_eq!(server.arrays().read(&path(), select![]).await.unwrap_err().to_string(), expected);
        assert_eq!(server.requests().len(), 1);
    }
}

#[tokio::test]
async fn long_retry_after_fails_at_once() {
    let busy = |seconds| Step::Respond(problem(503, "busy", &[&format!("Retry-After: {seconds}")], ""));
    let server = ScriptedServer::start([busy(3600)]).await;
    match server.arrays().read(&path(), select![]).await.unwrap_err() {
        ArrayError::Remote(RemoteError::Busy { retry_after }) => {
            assert_eq!(retry_after, Some(Duration::from_secs(3600)))
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.requests().len(), 1, "no retry after an hour");
}

#[tokio::test]
async fn futures_of_reads_are_send() {
    let server = ScriptedServer::start(vec![Step::Respond(elements("uint8", "2", "ab")); 4]).await;
    let arrays = server.arrays();
    let task = tokio::spawn(async move {
        let stream = arrays.stream(&path(), select![]).await.unwrap();
        let known = stream.description().version.unwrap();
        arrays.read(&path(), select![]).await.unwrap();
        arrays.read_if_changed(&path(), select![], known).await.unwrap().unwrap();
        arrays.read_as::<u8>(&path(), select![]).await.unwrap().content
    });
    assert_eq!(task.await.unwrap(), b"ab");
}

#[tokio::test]
async fn silent_server_is_an_idle_timeout() {
    let server = ScriptedServer::start([Step::Hang]).await;
    let timeouts = Timeouts { idle: Duration::from_millis(100), ..Timeouts::default() };
    let store = server.builder().timeouts(timeouts).retries(Retries::none()).build().unwrap();
    let error = ArrayClient::from(store.connection()).read(&path(), select![]).await.unwrap_err();
    assert!(matches!(error, ArrayError::Remote(RemoteError::Transport(TransportError::Idle(_)))), "{error:?}");
}
