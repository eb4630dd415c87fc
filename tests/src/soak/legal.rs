//! Well-behaved clients that know the expected responses.

use std::{collections::HashMap, sync::Arc};

use http::{Method, StatusCode};
use rand::{RngExt, SeedableRng, rngs::StdRng};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::{Context, pause};

/// The data read by hostile clients.
pub(super) const SHARED: &str = "shared";

const RAW: &str = "application/octet-stream";
const JSON: &str = "application/json";
/// The extent of both dimensions of the arrays.
const EXTENT: usize = 256;

pub(super) async fn begin(context: &Arc<Context>, random: &mut StdRng, running: &mut JoinSet<()>) {
    create_shared_data(context).await;
    for number in 0..4 {
        let mut seeded = || StdRng::seed_from_u64(random.random());
        running.spawn(values(context.clone(), number, seeded()));
        running.spawn(regions(context.clone(), number, seeded()));
        running.spawn(appends(context.clone(), number, seeded()));
        running.spawn(nodes(context.clone(), number, seeded()));
        running.spawn(listings(context.clone(), seeded()));
        running.spawn(uploads(context.clone(), number, seeded()));
    }
}

fn array(shape: &[usize], chunk: &[usize]) -> Value {
    json!({"zarr_format": 3, "node_type": "array", "shape": shape, "data_type": "uint8", "fill_value": 0,
        "attributes": {},
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "codecs": [{"name": "bytes"}, {"name": "zstd", "configuration": {"level": 1, "checksum": false}}]})
}

async fn create_shared_data(context: &Context) {
    let members = json!({"array": array(&[2048, 2048], &[128, 128]), "target": array(&[512, 512], &[64, 64])});
    let group = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members});
    let elements: Vec<u8> = (0..2048 * 2048).map(|offset: u32| (offset % 251) as u8).collect();
    for (method, target, media_type, body) in [
        (Method::PUT, format!("/node/{SHARED}"), JSON, group.to_string().into_bytes()),
        (Method::PUT, format!("/array/{SHARED}/array"), RAW, elements),
        (Method::PUT, format!("/store/{SHARED}/large"), RAW, vec![7; 32 << 20]),
    ] {
        let response = context.exchange(method, &target, media_type, body).await.expect("an answer");
        assert!(response.status.is_success(), "{target}: {}", response.status);
    }
}

fn bytes(random: &mut StdRng, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    random.fill(&mut bytes[..]);
    bytes
}

/// Sets, gets and erases its own keys.
async fn values(context: Arc<Context>, number: u32, mut random: StdRng) {
    let mut known: HashMap<u32, Option<Vec<u8>>> = (0..50).map(|key| (key, None)).collect();
    while context.is_running() {
        let key = random.random_range(0..50);
        let target = format!("/store/soak/values/{number}/{key}");
        match random.random_range(0..4) {
            0 => {
                let len = [0, 10, 4096, 4097, 60_000][random.random_range(0..5)];
                let value = bytes(&mut random, len);
                let set = context.exchange(Method::PUT, &target, RAW, value.clone()).await;
                // A value with unknown state is not compared.
                note(&mut known, key, set.filter(|set| set.status.is_success()).map(|_| Some(value)));
            }
            1 => {
                let erased = context.exchange(Method::DELETE, &target, RAW, "").await;
                note(&mut known, key, erased.filter(|erased| erased.status.is_success()).map(|_| None));
            }
            _ => {
                let Some(response) = context.exchange(Method::GET, &target, RAW, "").await else { continue };
                match (known.get(&key), response.status) {
                    (Some(Some(value)), StatusCode::OK) => context.compare(&target, &response.body, value),
                    (Some(None), StatusCode::NOT_FOUND) | (None, _) => {}
                    (_, status) => context.report_error(format!("{target}: {status}")),
                }
            }
        }
    }
}

fn note(known: &mut HashMap<u32, Option<Vec<u8>>>, key: u32, state: Option<Option<Vec<u8>>>) {
    match state {
        Some(state) => drop(known.insert(key, state)),
        None => drop(known.remove(&key)),
    }
}

/// Writes and reads regions of its own array.
async fn regions(context: Arc<Context>, number: u32, mut random: StdRng) {
    let path = format!("soak/regions/{number}");
    let mut known = Vec::new();
    while context.is_running() {
        if known.is_empty() {
            let document = array(&[EXTENT, EXTENT], &[32, 48]).to_string();
            context.exchange(Method::DELETE, &format!("/store/{path}/"), RAW, "").await;
            let declared = context.exchange(Method::PUT, &format!("/node/{path}"), JSON, document).await;
            if declared.is_some_and(|declared| declared.status.is_success()) {
                known = vec![0; EXTENT * EXTENT];
            }
            continue;
        }
        let mut range = || {
            let start = random.random_range(0..EXTENT);
            start..random.random_range(start..EXTENT) + 1
        };
        let [rows, columns] = [range(), range()];
        let target = format!("/array/{path}?select={}:{},{}:{}", rows.start, rows.end, columns.start, columns.end);
        if random.random_range(0..3) == 0 {
            let elements = bytes(&mut random, rows.len() * columns.len());
            for (row, part) in rows.zip(elements.chunks(columns.len())) {
                known[row * EXTENT..][columns.clone()].copy_from_slice(part);
            }
            let written = context.exchange(Method::PUT, &target, RAW, elements).await;
            if !written.is_some_and(|written| written.status.is_success()) {
                known.clear();
            }
            continue;
        }
        let expected: Vec<u8> = rows.flat_map(|row| known[row * EXTENT..][columns.clone()].to_vec()).collect();
        let Some(response) = context.exchange(Method::GET, &format!("{target}&format=raw"), RAW, "").await else {
            continue;
        };
        context.compare(&target, &response.body, &expected);
    }
}

/// Appends to its own array.
async fn appends(context: Arc<Context>, number: u32, mut random: StdRng) {
    let path = format!("soak/appends/{number}");
    let mut known: Option<Vec<u8>> = None;
    while context.is_running() {
        let Some(all) = known.as_mut().filter(|all| all.len() < 200_000) else {
            context.exchange(Method::DELETE, &format!("/store/{path}/"), RAW, "").await;
            let declared =
                context.exchange(Method::PUT, &format!("/node/{path}"), JSON, array(&[0], &[1000]).to_string()).await;
            known = declared.filter(|declared| declared.status.is_success()).map(|_| Vec::new());
            continue;
        };
        let len = random.random_range(1..5000);
        let more = bytes(&mut random, len);
        all.extend_from_slice(&more);
        let appended = context.exchange(Method::POST, &format!("/array/{path}?append=0"), RAW, more).await;
        if !appended.is_some_and(|appended| appended.status.is_success()) {
            known = None;
            continue;
        }
        if let Some(response) = context.exchange(Method::GET, &format!("/array/{path}?format=raw"), RAW, "").await {
            context.compare(&path, &response.body, all);
        }
        pause(&mut random, 50).await;
    }
}

/// Declares, reads, patches, validates, converts and erases its own trees.
async fn nodes(context: Arc<Context>, number: u32, mut random: StdRng) {
    for round in 0_u64.. {
        if !context.is_running() {
            break;
        }
        let path = format!("/node/soak/nodes/{number}");
        let member = json!({"zarr_format": 3, "node_type": "group", "attributes": {"round": round}, "members": {}});
        let members: serde_json::Map<String, Value> =
            (0..random.random_range(1..40)).map(|name: u32| (name.to_string(), member.clone())).collect();
        let tree = json!({"zarr_format": 3, "node_type": "group", "attributes": {}, "members": members});
        let declared = context.exchange(Method::PUT, &format!("{path}?overwrite"), JSON, tree.to_string()).await;
        if declared.is_some_and(|declared| declared.status.is_success()) {
            compare_node(&context, &path, &members).await;
            let patch = json!({"attributes": {"round": round, "text": "x".repeat(1000)}}).to_string();
            context.exchange(Method::PATCH, &format!("{path}/0"), JSON, patch).await;
            context.exchange(Method::POST, &format!("{path}?validate"), JSON, tree.to_string()).await;
            context.exchange(Method::POST, &format!("{path}?convert=v2"), JSON, "").await;
        }
        context.exchange(Method::DELETE, &path, JSON, "").await;
        pause(&mut random, 100).await;
    }
}

async fn compare_node(context: &Context, path: &str, members: &serde_json::Map<String, Value>) {
    let Some(returned) = context.exchange(Method::GET, &format!("{path}?depth=all"), JSON, "").await else { return };
    let returned: Value = serde_json::from_slice(&returned.body).unwrap_or_default();
    // Members are returned in key order.
    let sorted = |members: &serde_json::Map<String, Value>| {
        let mut all: Vec<(String, String)> =
            members.iter().map(|(name, node)| (name.clone(), node["attributes"].to_string())).collect();
        all.sort_unstable();
        format!("{all:?}").into_bytes()
    };
    let found = returned["members"].as_object().map(sorted).unwrap_or_default();
    context.compare(path, &found, &sorted(members));
}

async fn listings(context: Arc<Context>, mut random: StdRng) {
    let targets = [
        "/store/?list=keys&limit=10000",
        "/store/soak/values/",
        "/store/soak/?limit=1",
        "/node/soak?depth=all",
        "/metrics",
    ];
    while context.is_running() {
        let target = targets[random.random_range(0..targets.len())];
        if let Some(response) = context.exchange(Method::GET, target, JSON, "").await
            && !response.status.is_success()
            && response.status != StatusCode::NOT_FOUND
        {
            context.report_error(format!("{target}: {}", response.status));
        }
        pause(&mut random, 50).await;
    }
}

/// Sets and gets values that are too large for records.
async fn uploads(context: Arc<Context>, number: u32, mut random: StdRng) {
    let target = format!("/store/soak/uploads/{number}");
    while context.is_running() {
        let value = bytes(&mut random, 4 << 20);
        let set = context.exchange(Method::PUT, &target, RAW, value.clone()).await;
        if set.is_some_and(|set| set.status.is_success())
            && let Some(response) = context.exchange(Method::GET, &target, RAW, "").await
        {
            context.compare(&target, &response.body, &value);
        }
        pause(&mut random, 500).await;
    }
}
