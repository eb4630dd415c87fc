//! Consolidated metadata above an array: each entry is the document that it copies.

use http::Method;
use serde_json::{Map, Value, json};

use super::{
    Kind,
    client::{Reply, ServerClient},
    round::Round,
};

/// The documents of v2 that consolidated metadata copy, below the topmost group.
const COPIED: [&str; 4] = [".zgroup", ".zattrs", "x/.zarray", "x/.zattrs"];

impl Round {
    /// Stores consolidated metadata of v2, as a client does that reads all documents first.
    pub(super) async fn consolidate(&self, client: &ServerClient) -> Reply {
        let top = self.top();
        let mut metadata = Map::new();
        for name in COPIED {
            if let Some(document) = client.document(&format!("{top}/{name}")).await {
                metadata.insert(name.to_owned(), document);
            }
        }
        let document = json!({"zarr_consolidated_format": 1, "metadata": metadata});
        client.send_json(Method::PUT, &format!("/store/{top}/.zmetadata"), &document).await
    }

    /// Finds entries of consolidated metadata, of both dialects, that are not the documents that they copy.
    pub(super) async fn find_stale_copies(&self, client: &ServerClient) {
        let top = self.top();
        let Some(of_v2) = client.document(&format!("{top}/.zmetadata")).await else {
            return self.find(Kind::Other, "the consolidated metadata are gone".to_owned());
        };
        let of_v3 = client.document(&format!("{top}/zarr.json")).await;
        let of_v3 = of_v3.as_ref().map(|group| &group["consolidated_metadata"]["metadata"]);
        let entries = |metadata: &Value| metadata.as_object().cloned().unwrap_or_default();
        let copies = entries(&of_v2["metadata"]).into_iter().map(|(name, copy)| (format!("{top}/{name}"), copy));
        let copies_of_v3 = of_v3.map(entries).unwrap_or_default();
        let copies_of_v3 = copies_of_v3.into_iter().map(|(name, copy)| (format!("{top}/{name}/zarr.json"), copy));
        for (key, copy) in copies.chain(copies_of_v3).collect::<Vec<_>>() {
            let document = client.document(&key).await;
            if document.as_ref() != Some(&copy) {
                self.find(Kind::Mixed, format!("{key} is {document:?}, and its copy {copy}"));
            }
        }
        let array = of_v2["metadata"].get("x/.zarray");
        if array.is_none() {
            self.find(Kind::Mixed, format!("the array has no copy: {of_v2}"));
        }
    }
}
