//! Hierarchies and writes of elements, with the client and a zarrd server.

mod hierarchies {
    use std::sync::Arc;

    use bytes::Bytes;
    use futures::{StreamExt, stream};
    use serde_json::{Map, Value, json};
    use zarrd_client::{
        ArrayClient, ArrayError, ConvertOptions, CreateOptions, CreateStatus, Depth, Dialect, ExistingDocuments,
        IfExists, Json, LossPolicy, NewArray, NewElements, NodeClient, NodeEntry, NodeError, NodeKind, NodePath,
        NodeRejection, Patch, PatchMode, RemoteError, Zom, select, zom,
    };
    use zarrd_server::{AccessPolicy, Right, Settings};
    use zarrd_store::{
        Conditions, Guarantees, KeyCount, Keyed, MemoryStore, Payload, Precondition, ServedStore, StoreError,
        UploadError, Version, Writes,
    };
    use zarrd_wire::problem::ProblemType;

    use crate::test_server::TestServer;

    fn path(text: &str) -> NodePath {
        NodePath::parse(text).unwrap()
    }

    fn nodes(server: &TestServer) -> NodeClient {
        server.store.connection().into()
    }

    fn arrays(server: &TestServer) -> ArrayClient {
        server.store.connection().into()
    }

    fn text(json: Value) -> Json {
        Json::compact(&json)
    }

    fn zom(json: &Value) -> Zom {
        Zom::parse(json.to_string()).unwrap()
    }

    fn array(data_type: &str, shape: &[u64], chunks: &[u64]) -> Value {
        let fill_value = if data_type == "string" { json!("") } else { json!(0) };
        let codec = match data_type {
            "string" => json!({"name": "vlen-utf8"}),
            _ => json!({"name": "bytes", "configuration": {"endian": "little"}}),
        };
        json!({
            "zarr_format": 3, "node_type": "array", "shape": shape, "data_type": data_type, "fill_value": fill_value,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunks}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}}, "codecs": [codec],
        })
    }

    fn group(members: Value) -> Value {
        json!({"zarr_format": 3, "node_type": "group", "attributes": {"who": "me"}, "members": members})
    }

    /// Declares `/lab`: a group with an empty group and the `uint16` array `mice` of shape `(4, 3)`.
    async fn lab(server: &TestServer) -> Value {
        let lab = group(json!({"mice": array("uint16", &[4, 3], &[2, 3]), "empty": group(json!({}))}));
        let created = nodes(server).create(&path("lab"), &zom(&lab), &CreateOptions::default()).await.unwrap();
        assert_eq!(created.status, CreateStatus::Created);
        lab
    }

    fn object(json: Value) -> Map<String, Value> {
        let Value::Object(object) = json else { panic!("{json}") };
        object
    }

    #[tokio::test]
    async fn hierarchies_are_declared_read_and_erased() {
        let server = TestServer::start().await;
        let (nodes, at) = (nodes(&server), path("/lab"));
        assert!(!nodes.exists(&at).await.unwrap());
        let tree = lab(&server).await;
        assert!(nodes.exists(&at).await.unwrap());

        let again = nodes.create(&at, &zom(&tree), &CreateOptions::default()).await.unwrap();
        assert_eq!(again.status, CreateStatus::Existed);
        let result = nodes.node(&at, Depth::All).await.unwrap();
        assert_eq!((result.dialect, result.implicit, &result.path), (Dialect::V3, false, &at));
        assert_eq!((result.version, &result.zom), (again.node.version, &again.node.zom));
        assert_eq!(zom::Zom::differences(&zom(&tree), &result.zom, 10), []);

        let shallow = nodes.node(&at, Depth::Levels(0)).await.unwrap();
        let zom::Node::Group(shallow) = shallow.zom.root else { panic!("{shallow:?}") };
        assert!(shallow.members.is_none());
        assert_eq!(shallow.document.get("attributes").unwrap(), json!({"who": "me"}));
        let documents = nodes.documents(&at, Depth::All).await.unwrap();
        assert_eq!(documents.documents.keys().collect::<Vec<_>>(), ["", "/empty", "/mice"]);
        assert_eq!(documents.documents["/mice"].get("shape").unwrap(), json!([4, 3]));

        let child = |at: &str, kind| NodeEntry { path: path(at), dialect: Dialect::V3, kind: Some(kind) };
        let below = [child("/lab/empty", NodeKind::Group), child("/lab/mice", NodeKind::Array)];
        assert_eq!(nodes.children(&at).await.unwrap(), below);
        let all = nodes.descendants(&NodePath::root()).await.unwrap();
        assert_eq!(all[1..], below);
        assert_eq!(all[0], child("/lab", NodeKind::Group));

        assert_eq!(nodes.erase(&path("lab/mice"), Precondition::none()).await.unwrap(), KeyCount::exact(1));
        let error = nodes.erase(&path("lab/mice"), Precondition::none()).await.unwrap_err();
        assert!(matches!(&error, NodeError::NoSuchNode { path: missing } if *missing == path("lab/mice")), "{error:?}");
        assert_eq!(nodes.erase(&NodePath::root(), Precondition::none()).await.unwrap(), KeyCount::exact(2));
        assert!(!nodes.exists(&at).await.unwrap());
    }

    #[tokio::test]
    async fn differing_hierarchy_is_an_error_unless_replaced() {
        let server = TestServer::start().await;
        let (nodes, at) = (nodes(&server), path("lab"));
        let mut tree = lab(&server).await;
        tree["members"]["mice"]["shape"] = json!([5, 3]);
        let other = zom(&tree);
        let error = nodes.create(&at, &other, &CreateOptions::default()).await.unwrap_err();
        let NodeError::Rejected(NodeRejection::NodeConflict { path: of, differences }) = error else {
            panic!("{error:?}")
        };
        let [difference] = &differences[..] else { panic!("{differences:?}") };
        assert_eq!((of, difference.pointer.as_str()), (at.clone(), "/members/mice/shape/0"));
        assert_eq!((&difference.expected, &difference.actual), (&Some(text(json!(5))), &Some(text(json!(4)))));
        let compared = nodes.validate(&at, &other).await.unwrap();
        assert_eq!((compared.unchanged, compared.differences, compared.truncated), (false, differences, false));

        let absent = CreateOptions { precondition: Precondition::absent(), ..CreateOptions::default() };
        let error = nodes.create(&at, &other, &absent).await.unwrap_err();
        let NodeError::Rejected(NodeRejection::PreconditionFailed { current: Some(current), .. }) = error else {
            panic!("{error:?}")
        };
        let replace = CreateOptions {
            if_exists: IfExists::Replace,
            precondition: Precondition::at(current),
            ..CreateOptions::default()
        };
        let created = nodes.create(&at, &other, &replace).await.unwrap();
        assert_eq!(created.status, CreateStatus::Existed);
        assert!(nodes.validate(&at, &other).await.unwrap().unchanged);
    }

    #[tokio::test]
    async fn several_documents_are_changed_key_by_key_if_the_patch_says_so() {
        let folder = Guarantees {
            writes: Writes::Key,
            conditions: Conditions::ThisProcess,
            conditional_erase: true,
            ..Guarantees::READ_ONLY
        };
        let store = ServedStore::key_by_key(Arc::new(Keyed::new(MemoryStore::new(), folder)));
        let server = TestServer::over(store, Settings::default()).await;
        let (nodes, at) = (nodes(&server).with_dialect(Dialect::V2), path("a"));
        nodes.create(&at, &zom(&array("uint8", &[8], &[4])), &CreateOptions::default()).await.unwrap();
        let attributes = Some(Map::from_iter([("n".to_owned(), json!(1))]));
        let whole = Patch { attributes, shape: Some(vec![3]), ..Patch::default() };
        let error = nodes.patch(&at, &whole, Precondition::none()).await.unwrap_err();
        assert!(error.to_string().contains("?piecewise"), "{error}");
        let piecewise = Patch { mode: PatchMode::Piecewise, ..whole };
        let changed = nodes.patch(&at, &piecewise, Precondition::none()).await.unwrap();
        let zom::Node::Array(array) = &changed.zom.root else { panic!("{changed:?}") };
        assert_eq!(array.to_value().unwrap()["shape"], json!([3]));
    }

    #[tokio::test]
    async fn invalid_declarations_are_errors() {
        let server = TestServer::start().await;
        let nodes = nodes(&server);
        lab(&server).await;
        let array = zom(&array("uint8", &[1], &[1]));
        let declare = async |at: &str| nodes.create(&path(at), &array, &CreateOptions::default()).await.unwrap_err();
        let error = declare("lab/mice/c").await;
        assert!(
            matches!(&error, NodeError::Rejected(NodeRejection::ParentIsArray { array: above, .. }) if *above == path("lab/mice")),
            "{error:?}"
        );
        let error = declare("lab/__odd").await;
        assert!(matches!(&error, NodeError::InvalidName { .. }), "{error:?}");
    }

    #[tokio::test]
    async fn nodes_of_other_dialects_are_listed_separately_and_mapped() {
        let server = TestServer::start().await;
        let nodes = nodes(&server);
        lab(&server).await;
        let old = zom(&json!({"zarr_format": 2, "attributes": {}, "members": {"x": {
            "zarr_format": 2, "shape": [4], "chunks": [2], "dtype": "<i4", "compressor": null, "fill_value": 0,
            "filters": null, "order": "C", "attributes": {},
        }}}));
        let v2 = nodes.with_dialect(Dialect::V2);
        v2.create(&path("lab/old"), &old, &CreateOptions::default()).await.unwrap();
        let result = nodes.node(&path("lab"), Depth::All).await.unwrap();
        assert_eq!(result.other_dialects, [(path("lab/old"), Dialect::V2)]);
        let other = NodeEntry { path: path("lab/old"), dialect: Dialect::V2, kind: None };
        assert!(nodes.children(&path("lab")).await.unwrap().contains(&other));
        let error = nodes.with_dialect(Dialect::Draft).node(&path("lab/old"), Depth::All).await.unwrap_err();
        assert!(matches!(error, NodeError::NoSuchNode { .. }), "{error:?}");

        let mapped = nodes.node_as(&path("lab/old"), Depth::All, zom::ZomFormat::V3).await.unwrap();
        assert_eq!((mapped.dialect, mapped.zom.format), (Dialect::V2, zom::ZomFormat::V3));
        let into = ConvertOptions {
            dialect: Dialect::Draft,
            target: None,
            losses: LossPolicy::Allow,
            existing: ExistingDocuments::Keep,
        };
        let error = nodes.convert(&path("lab/old"), &into).await.unwrap_err();
        assert!(matches!(error, NodeError::NotInPlace { .. }), "{error:?}");
        let into = ConvertOptions {
            dialect: Dialect::V3,
            target: None,
            losses: LossPolicy::Allow,
            existing: ExistingDocuments::Keep,
        };
        let report = nodes.convert(&path("lab/old"), &into).await.unwrap();
        assert_eq!((report.nodes, report.chunks), (2, 0));
        assert_eq!(nodes.node(&path("lab/old/x"), Depth::All).await.unwrap().dialect, Dialect::V3);
    }

    #[tokio::test]
    async fn patches_check_their_precondition() {
        let server = TestServer::start().await;
        let (nodes, at) = (nodes(&server), path("lab/mice"));
        lab(&server).await;
        let before = nodes.node(&at, Depth::Levels(0)).await.unwrap().version.unwrap();
        let unit = object(json!({"unit": "mV"}));
        let changed = nodes.set_attributes(&at, unit.clone(), Precondition::at(before)).await.unwrap();
        assert_eq!(changed.zom.root.document().get("attributes").unwrap(), json!({"unit": "mV"}));
        let error = nodes.set_attributes(&at, unit, Precondition::at(before)).await.unwrap_err();
        assert!(
            matches!(&error, NodeError::Rejected(NodeRejection::PreconditionFailed { current, .. }) if *current == changed.version),
            "{error:?}"
        );
        let names = Some(Some(vec![Some("y".to_owned()), None]));
        let patch = Patch { dimension_names: names, shape: Some(vec![3, 3]), ..Patch::default() };
        let changed = nodes.patch(&at, &patch, Precondition::none()).await.unwrap();
        let document = changed.zom.root.document();
        assert_eq!(document.get("shape").unwrap(), json!([3, 3]));
        assert_eq!(document.get("dimension_names").unwrap(), json!(["y", null]));
        let changed = arrays(&server).resize(&at, vec![6, 3], Precondition::none()).await.unwrap();
        assert_eq!(changed.zom.root.document().get("shape").unwrap(), json!([6, 3]));
        let error = nodes.resize(&at, vec![6], Precondition::none()).await.unwrap_err();
        assert!(
            matches!(&error, NodeError::InvalidPatch { pointer: Some(pointer), .. } if pointer == "/shape"),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn elements_are_written_and_appended_in_every_format() {
        let server = TestServer::start().await;
        let (arrays, at) = (arrays(&server), path("lab/mice"));
        lab(&server).await;
        let none = Precondition::none;
        let report = arrays.write(&at, select![0..2, ..], &[1_u16, 2, 3, 4, 5, 6], none()).await.unwrap();
        assert_eq!((report.shape.as_slice(), report.chunks_written, report.chunks_erased), (&[4, 3][..], 1, 0));
        arrays.write(&at, select![.., 1], json!(9), none()).await.unwrap();
        arrays.write(&at, select![3, ..; 2], json!([7, 8]), none()).await.unwrap();
        arrays.write(&at, select![2, 0], Bytes::from_static(&[0, 1]), none()).await.unwrap();
        let report = arrays.append(&at, 0, &vec![10_u16, 11, 12], none()).await.unwrap();
        assert_eq!(report.shape, [5, 3]);
        let result = arrays.read_as::<u16>(&at, select![]).await.unwrap();
        assert_eq!(result.content, [1, 9, 3, 4, 9, 6, 256, 9, 0, 7, 9, 8, 10, 11, 12]);
        assert_eq!(arrays.nodes().node(&at, Depth::All).await.unwrap().version, report.version);

        let words = zom(&array("string", &[2], &[2]));
        arrays.nodes().create(&path("words"), &words, &CreateOptions::default()).await.unwrap();
        arrays.write(&path("words"), select![], NewElements::strings(["é", "bc"]).unwrap(), none()).await.unwrap();
        arrays.append(&path("words"), -1, NewElements::strings(["d"]).unwrap(), none()).await.unwrap();
        let result = arrays.read(&path("words"), select![]).await.unwrap();
        assert_eq!(result.strings().unwrap(), ["é", "bc", "d"]);

        let scalar = zom(&array("int8", &[], &[]));
        arrays.nodes().create(&path("one"), &scalar, &CreateOptions::default()).await.unwrap();
        arrays.write(&path("one"), select![], &[-5_i8], none()).await.unwrap();
        assert_eq!(arrays.read_as::<i8>(&path("one"), select![]).await.unwrap().content, [-5]);
    }

    #[tokio::test]
    async fn arrays_are_created_from_their_elements() {
        let server = TestServer::start().await;
        let (arrays, at) = (arrays(&server), path("new/mice"));
        let dimension_names = Some(vec!["y".to_owned(), "x".to_owned()]);
        let mice = NewArray { dimension_names, ..NewArray::of_shape([2, 3]) };
        let report = arrays.create(&at, &[1_i16, -2, 3, 4, 5, 6], &mice).await.unwrap();
        assert_eq!((report.shape.as_slice(), report.chunks_written), (&[2, 3][..], 1));
        assert_eq!(arrays.read_as::<i16>(&at, select![]).await.unwrap().content, [1, -2, 3, 4, 5, 6]);
        let node = arrays.nodes().node(&at, Depth::Levels(0)).await.unwrap();
        assert_eq!(node.version, report.version);
        assert_eq!(node.zom.root.document().get("dimension_names").unwrap(), json!(["y", "x"]));

        let error = arrays.create(&at, &[0_i16; 6], &mice).await.unwrap_err();
        assert!(matches!(&error, ArrayError::CannotCreate { kind: ProblemType::NodeConflict, .. }), "{error:?}");
        let stale = Precondition::at(Version::from_u128(1));
        let replace = NewArray { if_exists: IfExists::Replace, ..NewArray::of_shape([2]) };
        let error =
            arrays.create(&at, &[1_u8, 2], &NewArray { precondition: stale, ..replace.clone() }).await.unwrap_err();
        assert!(matches!(error, ArrayError::PreconditionFailed { .. }), "{error:?}");
        let words = NewElements::strings(["é", "bc"]).unwrap();
        let v2 = arrays.with_dialect(Dialect::V2).create(&path("words"), words, &replace).await.unwrap();
        assert_eq!(v2.shape, [2]);
        assert_eq!(arrays.read(&path("words"), select![]).await.unwrap().strings().unwrap(), ["é", "bc"]);
        arrays.create(&at, json!([7, 8]), &NewArray { data_type: Some("<u4".into()), ..replace }).await.unwrap();
        assert_eq!(arrays.read_as::<u32>(&at, select![]).await.unwrap().content, [7, 8]);
    }

    #[tokio::test]
    async fn array_that_cannot_be_created_is_an_error() {
        let server = TestServer::start().await;
        let (arrays, at) = (arrays(&server), path("a"));
        let shape = NewArray::of_shape([2]);
        let cases = [
            (arrays.create(&at, &[1_u8, 2], &NewArray::default()).await, ProblemType::MissingParameter),
            (arrays.create(&at, json!([1, 2]), &shape).await, ProblemType::MissingParameter),
            (arrays.create(&path("a/__b"), &[1_u8, 2], &shape).await, ProblemType::InvalidNodeName),
        ];
        for (created, expected) in cases {
            let error = created.unwrap_err();
            assert!(matches!(&error, ArrayError::CannotCreate { kind, .. } if *kind == expected), "{error:?}");
        }
        let error = arrays.create(&at, &[1_u8, 2, 3], &shape).await.unwrap_err();
        assert!(matches!(error, ArrayError::ElementsMismatch { .. }), "{error:?}");
        let other = NewArray { data_type: Some("int8".into()), ..shape.clone() };
        let error = arrays.create(&at, &[1_u8, 2], &other).await.unwrap_err();
        assert!(matches!(error, ArrayError::DataType { expected: "uint8", .. }), "{error:?}");
        let error = arrays.create(&at, NewElements::npy("no file"), &NewArray::default()).await.unwrap_err();
        assert!(matches!(error, ArrayError::InvalidElements { .. }), "{error:?}");
        assert!(matches!(arrays.read(&at, select![]).await, Err(ArrayError::NoSuchNode { .. })), "nothing was created");
    }

    #[cfg(feature = "ndarray")]
    #[tokio::test]
    async fn array_is_created_from_an_ndarray() {
        let server = TestServer::start().await;
        let (arrays, block) = (arrays(&server), ndarray::array![[1.5_f64, 2.0], [3.0, 4.0]]);
        arrays.create(&path("block"), NewElements::ndarray(&block.t()), &NewArray::default()).await.unwrap();
        let result = arrays.read_as::<f64>(&path("block"), select![]).await.unwrap();
        assert_eq!(result.into_ndarray().unwrap(), block.t().into_dyn());
    }

    #[cfg(feature = "ndarray")]
    #[tokio::test]
    async fn shape_of_ndarrays_is_checked() {
        let server = TestServer::start().await;
        let (arrays, at) = (arrays(&server), path("lab/mice"));
        lab(&server).await;
        let block = ndarray::array![[1_u16, 2], [3, 4], [5, 6]];
        arrays.write(&at, select![0..2, ..], NewElements::ndarray(&block.t()), Precondition::none()).await.unwrap();
        let result = arrays.read_as::<u16>(&at, select![0..2, ..]).await.unwrap();
        assert_eq!(result.into_ndarray().unwrap(), block.t().into_dyn());
        for wrong in [NewElements::ndarray(&block), NewElements::ndarray(&block.t().mapv(f32::from))] {
            let error = arrays.write(&at, select![0..2, ..], wrong, Precondition::none()).await.unwrap_err();
            let is_expected = matches!(error, ArrayError::ElementsMismatch { .. } | ArrayError::InvalidElements { .. });
            assert!(is_expected, "{error:?}");
        }
    }

    #[tokio::test]
    async fn streamed_elements_are_written() {
        let server = TestServer::start().await;
        let (arrays, at) = (arrays(&server), path("many"));
        let many = zom(&array("uint32", &[1 << 20], &[1 << 16]));
        arrays.nodes().create(&at, &many, &CreateOptions::default()).await.unwrap();
        let buffers = || stream::iter(0..1024_u32).map(|n| Ok(Bytes::from(n.to_le_bytes().repeat(1024))));
        let report = arrays.write(&at, select![], Payload::from_stream(buffers()), Precondition::none()).await.unwrap();
        assert_eq!(report.chunks_written, 16);
        let result = arrays.read_as::<u32>(&at, select![..; 1024]).await.unwrap();
        assert!(result.content.iter().copied().eq(0..1024));

        let short = Payload { size: Some(1 << 22), ..Payload::from_stream(buffers().take(1000)) };
        let error = arrays.write(&at, select![], short, Precondition::none()).await.unwrap_err();
        assert!(
            matches!(
                error,
                ArrayError::Content(StoreError::Upload(UploadError::LengthMismatch { received: 4_096_000, .. }))
            ),
            "{error:?}"
        );
    }

    #[tokio::test]
    async fn invalid_writes_are_errors() {
        let server = TestServer::start().await;
        let (arrays, at) = (arrays(&server), path("lab/mice"));
        lab(&server).await;
        let none = Precondition::none;
        let error = arrays.write(&at, select![0], &[1.0_f32; 3], none()).await.unwrap_err();
        assert!(matches!(&error, ArrayError::DataType { expected: "float32", actual: Some(name) } if name == "uint16"));
        let error = arrays.write(&at, select![0], &[1_u16; 4], none()).await.unwrap_err();
        assert!(matches!(error, ArrayError::ElementsMismatch { expected: Some(6), actual: Some(8), .. }), "{error:?}");
        let error = arrays.write(&at, select![0], json!([1, 2, 65536]), none()).await.unwrap_err();
        assert!(matches!(&error, ArrayError::InvalidElement { element, .. } if *element == [2]), "{error:?}");
        let error = arrays.append(&at, 0, &[1_u16; 4], none()).await.unwrap_err();
        assert!(matches!(error, ArrayError::ElementsMismatch { .. }), "{error:?}");
        let error = arrays.write(&at, select![9], json!(1), none()).await.unwrap_err();
        assert!(matches!(error, ArrayError::OutOfBounds { index: 9, extent: 4, .. }), "{error:?}");
        let error = arrays.write(&path("lab"), select![], json!(1), none()).await.unwrap_err();
        assert!(matches!(error, ArrayError::NotAnArray { .. }), "{error:?}");
        let wrong = Precondition::at(Version::from_u128(1));
        let error = arrays.write(&at, select![], json!(1), wrong.clone()).await.unwrap_err();
        assert!(matches!(error, ArrayError::PreconditionFailed { current: Some(_), .. }), "{error:?}");
        let error = arrays.append(&at, 0, json!([[1, 2, 3]]), wrong).await.unwrap_err();
        assert!(matches!(error, ArrayError::PreconditionFailed { .. }), "{error:?}");
        let result = arrays.read_as::<u16>(&at, select![]).await.unwrap();
        assert_eq!(result.content, [0; 12], "nothing was written");
    }

    #[tokio::test]
    async fn read_only_access_forbids_writes() {
        let server = TestServer::with(
            MemoryStore::new(),
            Settings { access: AccessPolicy::anonymous(Right::Read), ..Settings::default() },
        )
        .await;
        let group = zom(&group(json!({})));
        let error = nodes(&server).create(&path("a"), &group, &CreateOptions::default()).await.unwrap_err();
        assert!(matches!(error, NodeError::Remote(RemoteError::Unauthorized { .. })), "{error:?}");
        let error = arrays(&server).write(&path("a"), select![], json!(1), Precondition::none()).await.unwrap_err();
        assert!(matches!(error, ArrayError::Remote(RemoteError::Unauthorized { .. })), "{error:?}");
    }
}
