//! Trees of any form are returned as declared, and leave nothing when they are erased.

use proptest::{collection::btree_map, prelude::*};
use serde_json::Value;
use zarrd_array::CreateAction;
use zarrd_meta::Dialect;

use crate::hierarchies::test_store::{TestStore, v2_array, v2_group, v3_array, v3_group};

#[derive(Clone, Debug)]
enum Tree {
    Array(Vec<u64>),
    Group(std::collections::BTreeMap<String, Tree>),
}

impl Tree {
    fn any() -> impl Strategy<Value = Self> {
        let array = prop::collection::vec(0_u64..9, 0..3).prop_map(Self::Array);
        // The names include those of chunk keys and of other dialects' keys.
        let name = prop::sample::select(vec!["a", "a2", "b", "c", "0", "c0", "data", "meta", "x.array"]);
        array.prop_recursive(4, 24, 4, move |inner| {
            btree_map(name.clone().prop_map(str::to_owned), inner, 0..4).prop_map(Self::Group)
        })
    }

    fn in_dialect(&self, dialect: Dialect) -> Value {
        match (self, dialect) {
            (Self::Array(shape), Dialect::V2) => v2_array(shape),
            (Self::Array(shape), _) => v3_array(shape),
            (Self::Group(members), dialect) => {
                let members: serde_json::Map<_, _> =
                    members.iter().map(|(name, member)| (name.clone(), member.in_dialect(dialect))).collect();
                if dialect == Dialect::V2 { v2_group(&members.into()) } else { v3_group(&members.into()) }
            }
        }
    }
}

async fn round_trip(tree: &Tree, other: &Tree, dialect: Dialect) {
    let store = TestStore::new();
    let (first, second) = (tree.in_dialect(dialect), other.in_dialect(dialect));
    let declared = store.declare_as("/t", &first, dialect).await.unwrap();
    assert_eq!((declared.action, declared.node.dialect), (CreateAction::Created, dialect));
    let returned = store.all("/t").await;
    assert_eq!(comparable(&returned), comparable(&first));
    if dialect != Dialect::Draft {
        assert_eq!(returned, first);
    }
    let keys = store.keys().await;
    assert_eq!(store.declare("/t", &first).await.unwrap().action, CreateAction::Unchanged);
    assert_eq!(store.declare("/t", &returned).await.unwrap().action, CreateAction::Unchanged);
    assert_eq!(store.keys().await, keys);
    store.replace("/t", &second).await.unwrap();
    assert_eq!(comparable(&store.all("/t").await), comparable(&second));
    // Replacing a tree yields the same keys as creating it.
    let alone = TestStore::new();
    alone.declare_as("/t", &second, dialect).await.unwrap();
    let leftover = alone.keys().await;
    assert_eq!(store.keys().await, leftover);
    assert_eq!(store.erase("/t").await.unwrap(), leftover.len() as u64);
    assert!(store.keys().await.is_empty());
}

/// The properties that the draft shares with v3: the nodes, and the shapes of the arrays.
fn comparable(node: &Value) -> Value {
    let members = node.get("members").and_then(Value::as_object);
    let members =
        members.map(|members| members.iter().map(|(name, member)| (name.clone(), comparable(member))).collect());
    serde_json::json!({"shape": node.get("shape"), "members": members.map(Value::Object)})
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn random_trees_round_trip(
        tree in Tree::any(),
        other in Tree::any(),
        dialect in prop::sample::select(Dialect::ALL.to_vec()),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(round_trip(&tree, &other, dialect));
    }
}
