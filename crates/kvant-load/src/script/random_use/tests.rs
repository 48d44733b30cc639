use super::uses_random;

#[test]
fn finds_calls_in_code_only() {
    let uses = [
        "x = math.random(5)",
        "local r = math . random",
        "-- c\nmath.random()",
        "--[[ c ]] math.random()",
        "s='\\'' math.random()",
    ];
    for source in uses {
        assert!(uses_random(source.as_bytes()), "{source}");
    }
    let others = [
        "",
        "math.randomseed(1)",
        "mymath.random()",
        "math.floor(random)",
        "-- math.random()",
        "--[[\nmath.random()\n]]",
        "--[==[ ]] math.random() ]==] x = 1",
        "s = [[ math.random() ]]",
        "s = \"math.random()\"",
        "s = 'it\\'s math.random()'",
        "-- math.random",
        "--[[ math.random",
        "s = 'math.random",
        "s = 'x\\",
        "math",
    ];
    for source in others {
        assert!(!uses_random(source.as_bytes()), "{source}");
    }
}
