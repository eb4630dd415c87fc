//! Reads of arrays, with the client and a zarrd server.

mod reads {
    use bytes::BytesMut;
    use futures::TryStreamExt;
    use half::f16;
    use proptest::{collection::vec, prelude::*, test_runner::TestRunner};
    use serde_json::{Value, json};
    use zarrd_array::Options;
    use zarrd_client::{
        ArrayClient, ArrayError, ChunksQuery, Dialect, Element, Format, NodePath, PictureQuery, Query, ReadRequest,
        Selection, select,
    };
    use zarrd_server::{Limits, Settings};
    use zarrd_store::{Key, MemoryStore, Precondition, WriteableStore};

    use crate::test_server::TestServer;

    fn path(text: &str) -> NodePath {
        NodePath::parse(text).unwrap()
    }

    fn arrays(server: &TestServer) -> ArrayClient {
        server.store.connection().into()
    }

    async fn set(server: &TestServer, key: &str, bytes: impl Into<Vec<u8>>) {
        let bytes: Vec<u8> = bytes.into();
        server.store.set(&Key::parse(key).unwrap(), bytes.into(), Precondition::none()).await.unwrap();
    }

    fn document(data_type: Value, shape: &[u64], codecs: Value) -> Value {
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": 0,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": shape}},
            "chunk_key_encoding": {"name": "default"}, "codecs": codecs,
        })
    }

    fn little() -> Value {
        json!([{"name": "bytes", "configuration": {"endian": "little"}}])
    }

    /// Stores an array of one chunk with these bytes.
    async fn one_chunk(server: &TestServer, name: &str, document: Value, chunk: &[u8]) {
        set(server, &format!("{name}/zarr.json"), document.to_string()).await;
        let rank = document["shape"].as_array().unwrap().len();
        set(server, &format!("{name}/c{}", "/0".repeat(rank)), chunk).await;
    }

    #[tokio::test]
    async fn queries_are_computed_by_the_server() {
        let server = TestServer::start().await;
        numbers(&server).await;
        let (client, path) = (arrays(&server), path("numbers"));
        let query = Query::new().isel("y", 0..2).reduce(["max"], ["1"]).astype("int64");
        let read = client.query_as::<i64>(&path, &query).await.unwrap();
        assert_eq!((read.content, read.description.shape), (vec![4, 9], vec![2]));
        let stats = client.stats(&path, &Query::new().select(&select![0])).await.unwrap();
        assert_eq!((&stats["count"], &stats["mean"]), (&json!(5), &json!(2.0)));
        let picture = PictureQuery { min: Some(0.0), max: Some(29.0), ..PictureQuery::default() };
        let picture = Query::new().picture(picture);
        assert_eq!(client.thresholds(&path, &picture).await.unwrap()["colors"].as_array().unwrap().len(), 256);
        let file: BytesMut =
            client.query_format(&path, &picture, Format::Png).await.unwrap().try_collect().await.unwrap();
        assert!(file.starts_with(b"\x89PNG"));
        let chunks = client.chunks(&path, &ChunksQuery::default()).await.unwrap();
        assert_eq!((chunks.touched, chunks.chunks.unwrap()[3].index.clone()), (4, vec![1, 1]));
        let unknown = client.query(&path, &Query::new().reduce(["mean"], ["z"])).await;
        assert!(unknown.is_err(), "{unknown:?}");
    }

    /// Stores `numbers`: a `uint16` array of shape `(6, 5)` and chunks of shape `(4, 3)`, in which each element is its
    /// own position.
    async fn numbers(server: &TestServer) {
        let mut document = document(json!("uint16"), &[6, 5], little());
        document["chunk_grid"]["configuration"]["chunk_shape"] = json!([4, 3]);
        document["dimension_names"] = json!(["y", null]);
        set(server, "numbers/zarr.json", document.to_string()).await;
        for (row, column) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let elements = (0..4).flat_map(|y| (0..3).map(move |x| (row * 4 + y) * 5 + column * 3 + x));
            let bytes: Vec<u8> = elements.flat_map(|element: u16| element.to_le_bytes()).collect();
            set(server, &format!("numbers/c/{row}/{column}"), bytes).await;
        }
    }

    #[tokio::test]
    async fn selections_points_and_stacks_are_read() {
        let server = TestServer::start().await;
        numbers(&server).await;
        let (arrays, at) = (arrays(&server), path("/numbers"));
        for (request, shape, expected) in [
            (select![1, ..].into(), &[5][..], vec![5, 6, 7, 8, 9]),
            (select![..; -5, [0, -1]].into(), &[2, 2], vec![25, 29, 0, 4]),
            (select![3, 3].into(), &[], vec![18]),
            (select![6.., ..].into(), &[0, 5], vec![]),
            (ReadRequest::Points(vec![vec![0, 0], vec![-1, -1], vec![2, 3]]), &[3], vec![0, 29, 13]),
            (ReadRequest::Stack(vec![select![0, ..2], select![5, 3..]]), &[2, 2], vec![0, 1, 28, 29]),
            (select![vec![1; 2000], 0].into(), &[2000], vec![5; 2000]),
        ] {
            let result = arrays.read_as::<u16>(&at, request).await.unwrap();
            assert_eq!((result.description.shape.as_slice(), result.content), (shape, expected));
            assert_eq!(result.description.dialect, Dialect::V3);
        }
    }

    #[tokio::test]
    async fn responses_are_described() {
        let server = TestServer::start().await;
        numbers(&server).await;
        let (arrays, at) = (arrays(&server), path("/numbers"));
        let result = arrays.read(&at, select![..2, 4]).await.unwrap();
        assert_eq!(result.content, [4, 0, 9, 0].as_slice());
        assert_eq!(result.description.dimension_names, [Some("y".to_owned())]);
        assert_eq!(result.description.data_type.as_deref(), Some("uint16"));
        assert_eq!(arrays.describe(&at, select![..2, 4]).await.unwrap(), result.description);

        let mut stream = arrays.stream(&at, select![..2, 4]).await.unwrap();
        assert_eq!(*stream.description(), result.description);
        let mut all = BytesMut::new();
        while let Some(bytes) = stream.try_next().await.unwrap() {
            all.extend_from_slice(&bytes);
        }
        assert_eq!(all, result.content);
    }

    #[tokio::test]
    async fn unchanged_elements_are_not_returned() {
        let server = TestServer::start().await;
        numbers(&server).await;
        let (arrays, at) = (arrays(&server), path("/numbers"));
        for request in [select![..4, 0].into(), ReadRequest::Points(vec![vec![0, 0]])] {
            let known = arrays.read(&at, request.clone()).await.unwrap().description.version.unwrap();
            assert_eq!(arrays.read_if_changed(&at, request.clone(), known).await.unwrap(), None);
            set(&server, "numbers/c/0/0", [known.as_u128() as u8; 24]).await;
            let result = arrays.read_if_changed(&at, request, known).await.unwrap().unwrap();
            assert_ne!(result.description.version, Some(known));
        }
    }

    #[tokio::test]
    async fn every_numeric_data_type_is_read() {
        async fn check<T: Element + PartialEq + std::fmt::Debug>(name: &str, bytes: &[u8], expected: &[T]) {
            let server = TestServer::start().await;
            let mut document = document(json!(name), &[expected.len() as u64], little());
            if name.starts_with("complex") {
                document["fill_value"] = json!([0, 0]);
            } else if name == "bool" {
                document["fill_value"] = json!(false);
            }
            one_chunk(&server, "a", document, bytes).await;
            let result = arrays(&server).read_as::<T>(&path("a"), select![]).await.unwrap();
            assert_eq!(result.content, expected, "{name}");
        }
        check("bool", &[0, 1], &[false, true]).await;
        check("int8", &[0xff], &[-1_i8]).await;
        check("uint8", &[0xff], &[255_u8]).await;
        check("int16", &[0xfe, 0xff], &[-2_i16]).await;
        check("uint16", &[1, 2], &[0x0201_u16]).await;
        check("int32", &[1, 0, 0, 0x80], &[i32::MIN + 1]).await;
        check("uint32", &[1, 2, 3, 4], &[0x0403_0201_u32]).await;
        check("int64", &(-7_i64).to_le_bytes(), &[-7_i64]).await;
        check("uint64", &u64::MAX.to_le_bytes(), &[u64::MAX]).await;
        check("float16", &[0, 0x3c], &[f16::ONE]).await;
        check("float32", &1.5_f32.to_le_bytes(), &[1.5_f32]).await;
        check("float64", &(-0.1_f64).to_le_bytes(), &[-0.1_f64]).await;
        check("complex64", &[0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0], &[[1.0_f32, -2.0]]).await;
        check("complex128", &[1.0_f64, 2.0].map(f64::to_le_bytes).concat(), &[[1.0_f64, 2.0]]).await;
    }

    #[tokio::test]
    async fn strings_are_decoded() {
        let server = TestServer::start().await;
        let mut document = document(json!("string"), &[3], json!([{"name": "vlen-utf8"}]));
        document["fill_value"] = json!("");
        one_chunk(&server, "words", document, "\u{3}\0\0\0\u{2}\0\0\0é\u{0}\0\0\0\u{3}\0\0\0abc".as_bytes()).await;
        let arrays = arrays(&server);
        let result = arrays.read(&path("words"), select![..; -1]).await.unwrap();
        assert_eq!(result.strings().unwrap(), ["abc", "", "é"]);
        assert_eq!(arrays.describe(&path("words"), select![]).await.unwrap().bytes, None);
    }

    #[tokio::test]
    async fn dialect_selects_one_of_two_nodes_at_a_path() {
        let server = TestServer::start().await;
        one_chunk(&server, "two", document(json!("uint8"), &[1], little()), &[3]).await;
        let v2 = json!({"zarr_format": 2, "shape": [1], "chunks": [1], "dtype": "|u1", "compressor": null, "fill_value": 0,
            "filters": null, "order": "C"});
        set(&server, "two/.zarray", v2.to_string()).await;
        set(&server, "two/0", [2]).await;
        let arrays = arrays(&server);
        for (dialect, element) in [(Dialect::V2, 2), (Dialect::V3, 3)] {
            let result = arrays.with_dialect(dialect).read(&path("two"), select![]).await.unwrap();
            assert_eq!((result.description.dialect, &result.content[..]), (dialect, &[element][..]));
        }
        let error = arrays.with_dialect(Dialect::Draft).read(&path("two"), select![]).await.unwrap_err();
        assert!(matches!(error, ArrayError::NoSuchNode { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn invalid_reads_are_errors() {
        let server = TestServer::start().await;
        numbers(&server).await;
        set(&server, "group/zarr.json", r#"{"zarr_format": 3, "node_type": "group"}"#).await;
        let gzip = json!([{"name": "bytes", "configuration": {"endian": "little"}}, {"name": "gzip", "configuration": {"level": 1}}]);
        one_chunk(&server, "junk", document(json!("uint8"), &[4], gzip), b"junk").await;
        one_chunk(&server, "strange", document(json!("uint8"), &[4], json!([{"name": "unheard-of"}])), b"junk").await;
        set(&server, "broken/zarr.json", r#"{"zarr_format": 3, "node_type": "array"}"#).await;
        let arrays = arrays(&server);
        let error = async |at: &str, request: ReadRequest| arrays.read(&path(at), request).await.unwrap_err();
        let all = || ReadRequest::from(select![]);

        let result = error("none/a b", all()).await;
        assert!(matches!(&result, ArrayError::NoSuchNode { path: at } if *at == path("none/a b")), "{result:?}");
        let result = error("group", all()).await;
        assert!(matches!(&result, ArrayError::NotAnArray { path: at } if *at == path("group")), "{result:?}");
        let result = error("strange", all()).await;
        assert!(matches!(&result, ArrayError::Unsupported { needs, .. } if needs.contains("unheard-of")), "{result:?}");
        let result = error("broken", all()).await;
        assert!(
            matches!(&result, ArrayError::Metadata { key: Some(key), .. } if key == "broken/zarr.json"),
            "{result:?}"
        );
        let result = error("junk", all()).await;
        assert!(
            matches!(&result, ArrayError::UndecodableChunk { key, codec, .. } if key == "junk/c/0" && codec.contains("gzip")),
            "{result:?}"
        );
        for at in [select![.., -6], select![0, 5]] {
            let index = if at == select![0, 5] { 5 } else { -6 };
            let result = error("numbers", at.into()).await;
            let ArrayError::OutOfBounds { dimension: 1, index: reported, extent: 5 } = result else {
                panic!("{result:?}")
            };
            assert_eq!(reported, index);
        }
        let result = error("numbers", select![0, 0, 0].into()).await;
        assert!(matches!(result, ArrayError::SelectionMismatch { .. }), "{result:?}");
        let result = error("numbers", select![0, ..; 0].into()).await;
        assert!(matches!(result, ArrayError::InvalidSelection { position: Some(2), .. }), "{result:?}");
        let stack = ReadRequest::Stack(vec![select![0], select![..; 0]]);
        let result = error("numbers", stack).await;
        assert!(
            matches!(&result, ArrayError::InvalidSelection { pointer: Some(at), .. } if at == "/stack/1/0"),
            "{result:?}"
        );
        let error = arrays.describe(&path("group"), select![]).await.unwrap_err();
        assert!(matches!(error, ArrayError::NotAnArray { .. }), "{error:?}");
        let error = arrays.read_as::<i16>(&path("numbers"), select![]).await.unwrap_err();
        assert_eq!(error.to_string(), "the data type is uint16, not int16");
    }

    #[tokio::test]
    async fn too_large_selection_has_a_smaller_one_that_fits() {
        let limits = Limits { selection: 24, read_request: 100, ..Limits::default() };
        let options = Options { max_chunks: 3, ..Options::default() };
        let server =
            TestServer::with(MemoryStore::new(), Settings { limits, arrays: options, ..Settings::default() }).await;
        numbers(&server).await;
        let (arrays, at) = (arrays(&server), path("/numbers"));
        let error = arrays.read(&at, select![..4, ..3]).await.map(|result| result.content.len());
        assert!(matches!(error, Ok(24)), "{error:?}");
        match arrays.read(&at, select![..5, ..3]).await.unwrap_err() {
            ArrayError::SelectionTooLarge { size: Some(30), limit: Some(24), smaller: Some(smaller) } => {
                assert_eq!(arrays.read(&at, smaller).await.unwrap().content.len(), 24);
            }
            other => panic!("{other:?}"),
        }
        let error = arrays.read(&at, select![3..5, 2..4]).await.unwrap_err();
        assert!(matches!(error, ArrayError::TooManyChunks { chunks: 4, limit: 3 }), "{error:?}");
        let error = arrays.read(&at, ReadRequest::Points(vec![vec![0, 0]; 20])).await.unwrap_err();
        assert!(matches!(error, ArrayError::RequestTooLarge { limit: 100 }), "{error:?}");
    }

    /// An item that is within the bounds of a dimension, and the indices that it selects.
    fn item(extent: i64) -> impl Strategy<Value = (Selection, Vec<i64>)> {
        let slice = (-8..8_i64, -8..8_i64, prop_oneof![-3..0_i64, 1..4_i64]);
        prop_oneof![
            (-extent..extent).prop_map(move |at| (select![at], vec![at.rem_euclid(extent)])),
            vec(-extent..extent, 0..4).prop_map(move |list| {
                (select![list.clone()], list.into_iter().map(|at| at.rem_euclid(extent)).collect())
            }),
            slice.prop_map(move |(start, stop, step)| {
                let from_start = |bound: i64| if bound < 0 { bound + extent } else { bound };
                let (start_at, stop_at) = (from_start(start), from_start(stop));
                let all: Vec<i64> = if step > 0 {
                    (start_at.max(0)..stop_at.min(extent)).step_by(step as usize).collect()
                } else {
                    let first = start_at.min(extent - 1);
                    (stop_at.max(-1) + 1..=first).rev().step_by(step.unsigned_abs() as usize).collect()
                };
                (select![start..stop; step], all)
            }),
        ]
    }

    #[test]
    fn selections_are_equivalent_to_indexing() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let server = runtime.block_on(async {
            let server = TestServer::start().await;
            numbers(&server).await;
            server
        });
        let (arrays, at) = (arrays(&server), path("/numbers"));
        let two = (item(6), item(5));
        let checked = TestRunner::new(ProptestConfig::with_cases(200)).run(&two, |((rows, ys), (columns, xs))| {
            let selection = Selection { items: [rows.items, columns.items].concat() };
            let result = runtime.block_on(arrays.read_as::<u16>(&at, selection.clone())).unwrap();
            let expected: Vec<u16> = ys.iter().flat_map(|y| xs.iter().map(move |x| (y * 5 + x) as u16)).collect();
            prop_assert_eq!(result.content, expected, "{}", selection);
            Ok(())
        });
        checked.unwrap();
    }
}
