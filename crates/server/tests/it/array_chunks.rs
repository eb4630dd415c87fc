//! The chunks that a selection touches.

use crate::common::{
    TestServer,
    arrays::{put, v3, v3_with},
    foreign::ForeignStore,
    tokens::ServerWithTokens,
};
use http::StatusCode;
use serde_json::{Value, json};
use zarrd_store::MemoryStore;
use zarrd_wire::{chunks::ChunkMap, problem::ProblemType};

/// A matrix of 6 rows and 10 columns in chunks of 2 by 3, of which these are stored, with as many bytes.
const STORED: [([u64; 2], usize); 4] = [([0, 0], 5), ([1, 3], 7), ([2, 0], 11), ([2, 2], 13)];

async fn fill(server: &TestServer) {
    v3(server, "lab/m", json!("uint8"), &[6, 10], &[2, 3], json!(0)).await;
    for ([row, column], size) in STORED {
        put(server, &format!("lab/m/c/{row}/{column}"), vec![1; size]).await;
    }
}

async fn map(server: &TestServer, query: &str) -> ChunkMap {
    let answer = server.get(&format!("/array/lab/m?{query}"), &[]).await;
    assert_eq!((answer.status, answer.header("content-type")), (StatusCode::OK, "application/json"), "{query}");
    assert_eq!((answer.header("zarr-dialect"), answer.header("zarr-data-type")), ("v3", "uint8"));
    serde_json::from_value(answer.json()).unwrap()
}

fn entries(map: &ChunkMap) -> Vec<(Vec<u64>, Option<u64>)> {
    map.chunks.iter().flatten().map(|chunk| (chunk.index.clone(), chunk.bytes)).collect()
}

#[tokio::test]
async fn pages_have_touched_chunks_in_order() {
    let server = TestServer::new();
    fill(&server).await;
    let all = map(&server, "chunks").await;
    assert_eq!((&all.shape[..], &all.grid[..], all.touched), (&[6, 10][..], &[3, 4][..], 12));
    assert_eq!((all.chunk_shape.clone(), all.chunk_bytes, all.cursor.clone()), (Some(vec![2, 3]), Some(6), None));
    let expected: Vec<_> = (0..3)
        .flat_map(|row| (0..4).map(move |column| [row, column]))
        .map(|index| {
            let stored = STORED.iter().find(|(stored, _)| *stored == index);
            (index.to_vec(), stored.map(|(_, size)| *size as u64))
        })
        .collect();
    assert_eq!(entries(&all), expected);
    let keys: Vec<_> = all.chunks.iter().flatten().map(|chunk| chunk.key.clone().unwrap()).collect();
    assert_eq!((keys[0].as_str(), keys[11].as_str()), ("lab/m/c/0/0", "lab/m/c/2/3"));
    let mut paged = Vec::new();
    let mut next = map(&server, "chunks&limit=5").await;
    loop {
        paged.extend(entries(&next));
        let Some(cursor) = &next.cursor else { break };
        next = map(&server, &format!("chunks&limit=5&cursor={cursor}")).await;
    }
    assert_eq!(paged, expected);
    let some = map(&server, "chunks&select=-1,::-9").await;
    assert_eq!(entries(&some), [(vec![2, 0], Some(11)), (vec![2, 3], None)]);
    assert_eq!(entries(&map(&server, "chunks&select=0:0").await), []);
    assert_eq!(server.head("/array/lab/m?chunks", &[]).await.status, StatusCode::OK);
}

#[tokio::test]
async fn chunks_are_selected_by_name_and_label() {
    let server = TestServer::new();
    fill(&server).await;
    // Descending, so that a range of labels is found by value.
    v3(&server, "lab/y", json!("uint8"), &[6], &[6], json!(0)).await;
    let mut document: Value = server.get("/store/lab/y/zarr.json", &[]).await.json();
    document["dimension_names"] = json!(["y"]);
    put(&server, "lab/y/zarr.json", document.to_string().into_bytes()).await;
    put(&server, "lab/y/c/0", vec![60, 50, 40, 30, 20, 10]).await;
    let last = [(vec![2, 0], Some(11)), (vec![2, 1], None), (vec![2, 2], Some(13)), (vec![2, 3], None)];
    for query in ["isel.y=-2:", "isel.0=5", "sel.y=10..20", "sel.y=12~", "sel.y=10..20&isel.1=:"] {
        assert_eq!(entries(&map(&server, &format!("chunks&{query}")).await), last, "{query}");
    }
    let bins = map(&server, "chunks&bins=512&sel.y=10").await.bins.unwrap();
    assert_eq!((bins.stored, bins.bytes), (vec![1, 0, 1, 0], vec![11, 0, 13, 0]));
    for (query, problem) in [
        ("chunks&sel.y=11", ProblemType::LabelNotFound),
        ("chunks&sel.z=1", ProblemType::UnknownDimension),
        ("chunks&isel.y=0&isel.0=0", ProblemType::DimensionRepeated),
        ("chunks&isel.y=0&select=0", ProblemType::SelectionConflict),
        ("chunks&isel.y=6", ProblemType::IndexOutOfBounds),
    ] {
        let answer = server.get(&format!("/array/lab/m?{query}"), &[]).await;
        answer.problem(problem);
    }
}

#[tokio::test]
async fn bins_count_stored_chunks() {
    let server = TestServer::new();
    fill(&server).await;
    let each = map(&server, "chunks&bins=512").await.bins.unwrap();
    assert_eq!(each.stored, [1, 0, 0, 0, 0, 0, 0, 1, 1, 0, 1, 0]);
    assert_eq!(each.bytes, [5, 0, 0, 0, 0, 0, 0, 7, 11, 0, 13, 0]);
    assert_eq!((each.axes[1].dimension, &each.axes[1].starts[..], each.others), (1, &[0, 1, 2, 3][..], 1));
    let halves = map(&server, "chunks&bins=2&axis=1,y").await.bins.unwrap();
    let axes: Vec<_> = halves.axes.iter().map(|axis| (axis.dimension, &axis.starts[..], &axis.chunks[..])).collect();
    assert_eq!(axes, [(1, &[0, 2][..], &[2, 2][..]), (0, &[0, 2], &[2, 1])]);
    assert_eq!((&halves.stored[..], &halves.bytes[..]), (&[1, 1, 1, 1][..], &[5, 11, 7, 13][..]));
    let rows = map(&server, "chunks&bins=512&axis=0&select=:,3:").await.bins.unwrap();
    assert_eq!((&rows.stored[..], &rows.bytes[..], rows.others), (&[0, 1, 1][..], &[0, 7, 13][..], 3));
    for (query, kind) in [
        ("chunks&bins=2&axis=z", ProblemType::UnknownDimension),
        ("chunks&bins=2&axis=2", ProblemType::UnknownDimension),
        ("chunks&bins=2&axis=0,y", ProblemType::DimensionRepeated),
        ("chunks&bins=600", ProblemType::InvalidParameter),
        ("chunks&cursor=x", ProblemType::InvalidCursor),
        ("chunks&select=9", ProblemType::IndexOutOfBounds),
        ("chunks&format=json", ProblemType::UnknownParameter),
    ] {
        server.get(&format!("/array/lab/m?{query}"), &[]).await.problem(kind);
    }
}

#[tokio::test]
async fn listed_and_looked_up_chunks_are_the_same() {
    let (server, foreign) = (TestServer::new(), MemoryStore::new());
    let foreign_source = TestServer::over(std::sync::Arc::new(foreign.clone()), zarrd_server::Settings::default());
    for server in [&server, &foreign_source] {
        // More chunks than are looked up one by one.
        v3(server, "lab/m", json!("uint8"), &[7, 300, 400], &[1, 2, 3], json!(0)).await;
        for number in 0..200_u64 {
            let (plane, row, column) = (number % 7, number * 37 % 150, number * 91 % 134);
            put(server, &format!("lab/m/c/{plane}/{row}/{column}"), vec![1; (number % 9) as usize]).await;
        }
    }
    let unlisted = ForeignStore::unlisted(foreign.clone()).serve();
    let foreign = ForeignStore::new(foreign).serve();
    for query in ["", "&select=3", "&select=::2,7:250:5,::-1", "&select=(1,6,1),:,(0,399)", "&select=...,1:399:4"] {
        for bins in ["bins=512", "bins=7,9", "bins=3,5&axis=0,2", "bins=64&axis=1"] {
            let query = format!("chunks&{bins}{query}");
            let found = map(&server, &query).await;
            for other in [&foreign, &unlisted] {
                assert_eq!(map(other, &query).await, found, "{query}");
            }
            let bins = found.bins.unwrap();
            assert!(bins.stored.iter().sum::<u64>() <= 200 && bins.stored.iter().any(|&stored| stored > 0), "{query}");
        }
    }
    assert_eq!(map(&server, "chunks&bins=1").await.bins.unwrap().stored, [200]);
}

#[tokio::test]
async fn trillions_of_chunks_are_listed_or_refused() {
    let memory = MemoryStore::new();
    let server = TestServer::over(std::sync::Arc::new(memory.clone()), zarrd_server::Settings::default());
    v3(&server, "lab/m", json!("uint8"), &[1 << 40, 1 << 22], &[2, 4], json!(0)).await;
    put(&server, "lab/m/c/549755813887/1048575", vec![1; 8]).await;
    put(&server, "lab/m/c/549755813888/0", vec![1; 8]).await;
    let found = map(&server, "chunks&bins=512").await;
    assert_eq!(found.touched, 1 << 59);
    let bins = found.bins.unwrap();
    assert_eq!((bins.stored.len(), bins.stored.iter().sum::<u64>(), bins.bytes[512 * 512 - 1]), (512 * 512, 1, 8));
    let last = map(&server, "chunks&select=-2:,-1").await;
    assert_eq!(entries(&last), [(vec![549_755_813_887, 1_048_575], Some(8))]);
    let start = map(&server, "chunks&limit=2").await;
    assert_eq!(entries(&start), [(vec![0, 0], None), (vec![0, 1], None)]);
    let unlisted = ForeignStore::unlisted(memory).serve();
    let problem = unlisted.get("/array/lab/m?chunks&bins=512", &[]).await.problem(ProblemType::TooManyChunks);
    assert!(problem.detail.contains("--max-chunks"), "{}", problem.detail);
}

#[tokio::test]
async fn shards_are_units() {
    let server = TestServer::new();
    let bytes = json!({"name": "bytes"});
    let sharding = json!({"name": "sharding_indexed", "configuration": {
        "chunk_shape": [1, 2], "codecs": [bytes], "index_codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
    }});
    v3_with(&server, "lab/m", json!("uint8"), &[4, 4], &[2, 4], json!(0), json!([sharding])).await;
    let found = map(&server, "chunks&select=0").await;
    assert_eq!((found.inner_chunk_shape, found.chunk_shape, found.touched), (Some(vec![1, 2]), Some(vec![2, 4]), 1));
}

#[tokio::test]
async fn cursors_of_chunks_belong_to_their_caller() {
    let closed = ServerWithTokens::closed();
    fill(&closed.server).await;
    let [(_, one), (_, other)] = [closed.token(&["read:lab/"]), closed.token(&["read:lab/m/"])];
    let (_, elsewhere) = closed.token(&["read:lab/n/"]);
    let get = async |query: &str, token: &str| {
        closed.server.get(&format!("/array/lab/m?{query}"), &[("authorization", token)]).await
    };
    let first: Value = get("chunks&limit=1", &one).await.json();
    let cursor = first["cursor"].as_str().unwrap();
    assert_eq!(get(&format!("chunks&cursor={cursor}"), &one).await.status, StatusCode::OK);
    get(&format!("chunks&cursor={cursor}"), &other).await.problem(ProblemType::InvalidCursor);
    assert_eq!(get("chunks", &elsewhere).await.status, StatusCode::FORBIDDEN);
}
