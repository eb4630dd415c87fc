//! Elements of variable length whose bytes lie.

use super::*;

#[test]
fn wrong_lengths_of_variable_elements_are_rejected() {
    let chain = v3_chain(&json!("string"), &[2], &json!(["vlen-utf8"])).unwrap();
    let good = "02000000 01000000 61 02000000 c3a9";
    let decode = |text: &str| chain.decode(hex(&text.replace(' ', "")).into(), BUDGET);
    assert_eq!(decode(good).unwrap(), variable(&[b"a".to_vec(), "é".into()]));
    let lies = [
        ("no header", ""),
        ("half a header", "0200"),
        ("fewer elements", "01000000 01000000 61"),
        ("more elements", "03000000 01000000 61 02000000 c3a9 00000000"),
        ("as many as there can be", "ffffffff 01000000 61 02000000 c3a9"),
        ("an element that is too long", "02000000 01000000 61 03000000 c3a9"),
        ("an element of 4 GiB", "02000000 01000000 61 ffffffff c3a9"),
        ("no second element", "02000000 01000000 61"),
        ("a rest", "02000000 01000000 61 02000000 c3a9 00"),
        ("no UTF-8", "02000000 01000000 61 02000000 c3c3"),
    ];
    for (name, text) in lies {
        assert!(matches!(decode(text), Err(CodecError::Malformed { codec: "vlen-utf8", .. })), "{name}");
    }
    // The number of elements is compared before there is room for them.
    let many = v3_chain(&json!("bytes"), &[u32::MAX.into()], &json!(["vlen-bytes"])).unwrap();
    assert!(many.decode(hex("ffffffff00000000").into(), u64::MAX).is_err());
}

#[test]
fn malformed_json_is_rejected() {
    let specs = model(&json!([["numcodecs", "json2", {}]]));
    let data_type = parse_v2(&json!("|O"), V2Context { object_codec: specs.first() }).unwrap().0;
    let chain = chain(&data_type, &[2, 1], &specs).unwrap();
    let decode = |text: &str| chain.decode(text.as_bytes().to_vec().into(), BUDGET);
    let texts = |texts: &[&str]| variable(&texts.iter().map(|text| text.as_bytes().to_vec()).collect::<Vec<_>>());
    assert_eq!(decode(r#"[[1],["a,]\"["],"|O",[2,1]]"#).unwrap(), texts(&["1", r#""a,]\"[""#]));
    assert_eq!(
        decode(" [ [ 1 ] , [ {\"a\": [2, 3]} ] , \"|O\" , [ 2 , 1 ] ] ").unwrap(),
        texts(&["1", "{\"a\": [2, 3]}"])
    );
    assert_eq!(decode(r#"[1,2,"|O",[2]]"#).unwrap(), texts(&["1", "2"]));
    let constants = r#"[[NaN],[[-Infinity,"NaN\"NaN",-1]],"|O",[2,1]]"#;
    assert_eq!(decode(constants).unwrap(), texts(&["NaN", r#"[-Infinity,"NaN\"NaN",-1]"#]));
    let deep = format!("[[{}1{}],[1],\"|O\",[2,1]]", "[".repeat(100_000), "]".repeat(100_000));
    let lies = [
        "",
        "[",
        "[]",
        "[[2,1]]",
        r#"["|O",[2,1]]"#,
        r#"[[1],"|O",[2,1]]"#,
        r#"[[1],[2],[3],"|O",[2,1]]"#,
        r#"[[1],[2],"|O",[3,1]]"#,
        r#"[[1],[2,3],"|O",[2,1]]"#,
        r#"[[1],[],"|O",[2,1]]"#,
        r#"[[1],[2],"|O",[2,1]"#,
        r#"[[1],[2],"|O",[2,1]]]"#,
        r#"[[1],[2],"|O",[2,1],]"#,
        r#"[[1],[2,],"|O",[2,1]]"#,
        r#"[[1],["],"|O",[2,1]]"#,
        r#"[[1],[nan],"|O",[2,1]]"#,
        r#"[[1],[2],"|O",[4294967296,4294967296]]"#,
        r#"[[1],[2],"|O",[-2,-1]]"#,
        r#"[[1],[2],3,[2,1]]"#,
        "[[1],[2},\"|O\",[2,1]]",
        deep.as_str(),
    ];
    for text in lies {
        assert!(decode(text).is_err(), "{}", text.chars().take(80).collect::<String>());
    }
}
