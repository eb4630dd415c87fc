# Tables of cases with the tests that check them; sourced by the commands of this folder, which have a function `cases` that
# prints lines `case | neighbour | package | program | test`, a directory $scratch and an array `table`.

programs() {
    cargo test --workspace --no-run --message-format=json 2>/dev/null | python3 -c '
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    if message.get("executable") and message.get("profile", {}).get("test"):
        manifest = message["manifest_path"]
        package = next(l for l in open(manifest) if l.startswith("name")).split("\"")[1]
        print(package, message["target"]["name"], message["executable"], manifest.rsplit("/", 1)[0])'
}

# Runs the tests of all cases, and adds a row for each.
run_cases() {
    local package program name case neighbour passed executable directory names
    programs >"$scratch/programs"
    cases | awk -F ' [|] ' '{print $3, $4}' | sort -u | while read -r package program; do
        read -r executable directory < <(awk -v p="$package" -v t="$program" '$1 == p && $2 == t {print $3, $4}' "$scratch/programs")
        mapfile -t names < <(cases | awk -F ' [|] ' -v p="$package" -v t="$program" '$3 == p && $4 == t {print $5}')
        (cd "$directory" && CARGO_MANIFEST_DIR="$directory" RUST_TEST_THREADS=8 "$executable" --exact "${names[@]}" 2>&1) |
            sed "s/^/$package $program /" >>"$scratch/results"
    done
    while IFS='|' read -r case neighbour package program name; do
        read -r package program name <<<"$package $program $name"
        passed=NO
        grep -qxF "$package $program test $name ... ok" "$scratch/results" && passed=yes
        table+=("$case|$neighbour| $name | $passed")
    done < <(cases)
}

# Prints the table, and fails if a row does.
print_table() {
    printf '\ncase | neighbour | test, or measured | pass\n---|---|---|---\n'
    printf '%s\n' "${table[@]}"
    printf '%s cases, %s of them fail\n' "${#table[@]}" "$(printf '%s\n' "${table[@]}" | grep -c '| NO$')"
    ! printf '%s\n' "${table[@]}" | grep -q '| NO$'
}
