"""Model files by hand, and whether loader and checker take them; both say the same of each."""

import json
from collections.abc import Callable

from hostile import (
    F64,
    Parts,
    convolution,
    definitions,
    layer,
    nested,
    network,
    numbers,
    small,
)

MODELS: dict[str, tuple[Parts, bool]] = {
    "a head alone": (small(), True),
    "a branch of nothing": (nested(0), True),
    "branches 8 deep": (nested(7), True),
    "branches 9 deep": (nested(8), False),
    "branches 300 deep": (nested(299), False),
    "1000 layers": (network(*[layer("abs")] * 999), True),
    "1001 layers": (network(*[layer("abs")] * 1000), False),
    "200,000 layers": (network(*[layer("abs")] * 200_000), False),
    "999 layers in a branch": (
        network(
            layer("convex_combination", branch=[layer("abs")] * 999), **{"0_share": numbers([])}
        ),
        False,
    ),
    "pixel unshuffle of no map": (
        network(layer("pixel_unshuffle", factor=2), layer("flatten"), in_shape=(4, 4), inputs=4),
        False,
    ),
    "max pool of no map": (
        network(layer("max_pool", size=1), layer("flatten"), in_shape=(4, 4), inputs=4),
        False,
    ),
    "average pool of no map": (
        network(layer("scaled_average_pool", size=2), layer("flatten"), in_shape=(4, 4), inputs=4),
        False,
    ),
    "half of an absolute value": (network(layer("partial_abs", parts=2)), True),
    "the whole of an absolute value": (network(layer("partial_abs", parts=1)), False),
    "a part of an absolute value of too few channels": (
        network(layer("partial_abs", parts=3)), False,
    ),
    "a true part": (network(layer("partial_abs", parts=True)), False),
    "no part": (network(layer("partial_abs", parts=0)), False),
    "a part without its number": (network(layer("partial_abs")), False),
    "a pool of norms of no map": (
        network(layer("l2_pool", size=2), layer("flatten"), in_shape=(4, 4), inputs=4),
        False,
    ),
    "a pool of norms": (
        network(layer("l2_pool", size=2), layer("flatten"), in_shape=(1, 4, 4), inputs=4), True,
    ),
    "a pool of norms of a ragged map": (
        network(layer("l2_pool", size=2), layer("flatten"), in_shape=(1, 4, 3), inputs=4), False,
    ),
    "a pool of norms of a true size": (
        network(layer("l2_pool", size=True), layer("flatten"), in_shape=(1, 4, 4), inputs=16),
        False,
    ),
    "a pool of norms of nothing": (
        network(layer("l2_pool", size=0), layer("flatten"), in_shape=(1, 4, 4), inputs=4), False,
    ),
    "a map": (
        network(
            layer("pixel_unshuffle", factor=2), layer("flatten"), in_shape=(1, 4, 4), inputs=16
        ),
        True,
    ),
    "a head of no vector": (small().with_header(in_shape="[1, 2]"), False),
    "a flat head": (network(layer("flatten"), in_shape=(1, 2)), True),
    "inputs of no axis": (network(layer("flatten"), in_shape=()), False),
    "inputs of nine axes": (network(layer("flatten"), in_shape=[1] * 8 + [2]), False),
    "inputs of 2 GB": (
        network(layer("max_pool", size=1), layer("flatten"), in_shape=(1, 2**14, 2**14), inputs=1),
        True,
    ),
    "inputs of 4 GB": (
        network(layer("max_pool", size=1), layer("flatten"), in_shape=(2, 2**14, 2**14), inputs=2),
        False,
    ),
    "a map of 10^10 pixels": (convolution([100_000, 100_000]), False),
    "a side of 8009": (convolution([8009, 1]), False),
    "a convolution": (convolution([1, 2], real=2, in_shape=(1, 1, 2)), True),
    "a convolution of too few blocks": (convolution([1, 2], in_shape=(1, 1, 2)), False),
    "a convolution of other maps": (convolution([1, 2], real=2, in_shape=(1, 2, 1)), False),
    "a convolution of a vector": (convolution([1, 2], real=2), False),
    "map_size of 3 sides": (convolution([1, 2, 9], real=2, in_shape=(1, 1, 2)), False),
    "map_size of a side": (convolution([1], in_shape=(1, 1, 2)), False),
    "map_size of no side": (convolution([], in_shape=(1, 1, 2)), False),
    "map_size a text": (convolution("ab", in_shape=(1, 1, 2)), False),
    "map_size of floats": (convolution([1.0, 2.0], real=2, in_shape=(1, 1, 2)), False),
    "map_size of nothing": (convolution([0, 0], in_shape=(1, 1, 2)), False),
    "map_size below nothing": (convolution([-4, -4], in_shape=(1, 1, 2)), False),
    "map_size a number": (convolution(2, in_shape=(1, 1, 2)), False),
    "one class": (
        Parts(small().header, {"0.weight": numbers([1, 2]), "0.bias": numbers([1])}).with_header(
            classes='["a"]'
        ),
        False,
    ),
    "no class": (
        Parts(small().header, {"0.weight": numbers([0, 2]), "0.bias": numbers([0])}).with_header(
            classes="[]"
        ),
        False,
    ),
    "no feature": (
        network(layer("dense"), inputs=0, **{"0_weight": numbers([0, 2]), "0_bias": numbers([0])}),
        False,
    ),
    "a size of 10^18 and one of 0": (
        network(layer("dense"), **{"0_weight": (F64, [2, 10**18, 0], b""), "0_bias": numbers([2])}),
        False,
    ),
    "a size of 10^30 and one of 0": (
        network(layer("dense"), **{"0_weight": (F64, [10**30, 0], b""), "0_bias": numbers([2])}),
        False,
    ),
    "tensors of two types": (
        network(
            layer("dense"), **{"0_weight": ("F32", [2, 2], b"\0" * 16), "0_bias": numbers([2])}
        ),
        False,
    ),
    "a second normalisation": (
        network(
            layer("abs"), layer("normalize"), **{"1_mean": numbers([2]), "1_std": numbers([2])}
        ),
        False,
    ),
    "a normalisation": (
        network(layer("normalize"), **{"0_mean": numbers([2]), "0_std": numbers([2])}), True,
    ),
    "a normalisation in a branch": (
        network(
            layer("convex_combination", branch=[layer("normalize")]),
            **{
                "0_share": numbers([]), "0_branch_0_mean": numbers([2]),
                "0_branch_0_std": numbers([2]),
            },
        ),
        False,
    ),
    "a weight in the configuration": (
        small().with_header(layers=json.dumps([layer("dense", weight=[[1.0, 0.0], [0.0, 1.0]])])),
        False,
    ),
    "a whole weight in the configuration": (
        Parts(small().header, {"0.bias": numbers([2])}).with_header(
            layers=json.dumps([layer("dense", weight=3)])
        ),
        False,
    ),
    "a share in the configuration": (
        network(layer("convex_combination", branch=[], share=1)), False,
    ),
    "a share of NaN": (
        network(layer("convex_combination", branch=[]), **{"0_share": numbers([], float("nan"))}),
        False,
    ),
    "a share of 1": (
        network(layer("convex_combination", branch=[]), **{"0_share": numbers([], 1.0)}), True,
    ),
    "another definition of a profile": (
        small().with_header(
            profiles=json.dumps(definitions() | {"float32": definitions()["float64"]})
        ),
        False,
    ),
    "one more profile": (
        small().with_header(
            profiles=json.dumps(definitions() | {"short": definitions()["float64"]})
        ),
        False,
    ),
    "profiles in another order": (
        small().with_header(profiles=json.dumps(definitions(), sort_keys=True, indent=1)), True,
    ),
    "a name of 1000 signs": (small().with_header(classes=json.dumps(["a" * 1000, "b"])), True),
    "a name of 1001 signs": (small().with_header(classes=json.dumps(["a" * 1001, "b"])), False),
    "a name of two lines": (small().with_header(classes=json.dumps(["a\nb", "b\u2028\0"])), True),
    "three names": (small().with_header(classes='["a", "b", "c"]'), False),
    "names of a text": (small().with_header(classes='"ab"'), False),
    "another entry": (small().with_header(more="1"), False),
}  # fmt: skip
"""Files with the right hash, and whether both readers take them."""

ENTRIES = {
    "layers": {
        "null": False, "5": False, "{}": False, "[]": False, '{"0": 1}': False, '"dense"': False,
        '["dense"]': False, '[{"kind": ["dense"], "configuration": {}}]': False,
        '[{"kind": "dense", "configuration": []}]': False,
        '[{"kind": "dense", "configuration": null}]': False,
        '[{"kind": "dense"}]': False,
        '[{"kind": "dense", "configuration": {}, "norm": 0.5}]': False,
        '[{"configuration": {}, "kind": "dense"}]': True,
        ' [ {"kind" : "dense", "configuration":{}} ]\n': True,
        '[{"kind": "dense", "kind": "dense", "configuration": {}}]': False,
        '[{"kind": "abs", "kind": "dense", "configuration": {}}]': False,
        '[{"kind": "den\\u0073e", "configuration": {}}]': True,
        '[{"kind": "relu", "configuration": {}}]': False,
        '\ufeff[{"kind": "dense", "configuration": {}}]': False,
        "[" * 100_000: False, "[" * 100_000 + "]" * 100_000: False, "[" * 70 + "]" * 70: False,
    },
    "in_shape": {
        "[2.0]": False, "[true]": False, '["2"]': False, "[-0]": False, "[0]": False, "[-2]": False,
        "2": False, "null": False, "[2e0]": False, "[NaN]": False, "[1e400]": False, '"2"': False,
        "[" + "9" * 400 + "]": False, "[" + "9" * 5000 + "]": False, "[02]": False, "[2,]": False,
        "[[2]]": False, "[2 ]": True, "{\"2\": 2}": False,
    },
    "classes": {
        '["a", 1]': False, '["a", null]': False, "[]": False, "null": False,
        '["a", "\\ud800"]': False, '["a", "\\ud83d\\ude00"]': True, '["a", "a"]': True,
        '["", ""]': True, '["a", "\\u0000"]': True, '{"a": 0, "b": 1}': False, '"ab"': False,
        "['a', 'b']": False,
    },
    "domain": {
        "null": True, "[0, 1]": True, "[0.0, 1e300]": True, "[1, 0]": False, "[0, 0]": False,
        "[NaN, 1]": False, "[0, Infinity]": False, "[0, 1e400]": False, "[-0, 1]": False,
        "[-0.0, 1]": True, "[true, 2]": False, '["0", "1"]': False, "[0]": False, "{}": False,
        "[0, 5e-324]": True, "[0, 1, 2]": False, "[9007199254740992, 9007199254740993]": False,
        "false": False, "[]": False, "0": False, f"[0, {10**400}]": False,
    },
    "facts": {
        "{}": True, "null": False, "[]": False, "[[]]": False, '[["head", "upd"]]': False,
        '{"head": "upd"}': True, '{"head": "orthonormal"}': True, '{"head": "unit_rows"}': True,
        '{"head": "other"}': False, '{"head": ["upd"]}': False, '{"head": null}': False,
        '{"x": NaN}': False, '{"x": 1e-400}': True, '{"x": 1e400}': False,
        '{"x": -Infinity}': False,
        '{"x": 1, "x": 1}': False, '{"a": {"x": 1, "x": 2}}': False, '{"x": "\\udfff"}': False,
        '{"\\ud800": 1}': False, '{"x": ' + "[" * 60 + "]" * 60 + "}": True,
        '{"x": ' + "[" * 70 + "]" * 70 + "}": False,
        '{"x": ' + "[" * 9000 + "]" * 9000 + "}": False,
        '{"x": -0}': False, '{"x": 01}': False, '{"x": .5}': False, "{'x': 1}": False, "": False,
        '{"x": 1}{}': False, '{"x": "\t"}': False, "false": False, "0": False, '""': False,
    },
    "profile": {
        '"float64"': True, '"float32"': True, '"float16"': False, "null": False, "0": False,
        '["float64"]': False, "{}": False, "float64": False, '"FLOAT64"': False, '""': False,
    },
    "profiles": {
        "{}": False, "null": False, "[]": False,
        json.dumps(definitions()).replace('"float32"}', '"float64"}'): False,
        json.dumps(definitions()).replace('"float32"}', '"float32", "chunk": null}'): False,
        json.dumps(definitions()).replace('"dtype"', '"dtype": "float16", "dtype"', 1): False,
    },
    "format": {"unitmargin-frozen-2": False, "": False, "unitmargin-frozen-3 ": False},
}  # fmt: skip
"""Texts of an entry of a small file, with the right hash, and whether both readers take it."""

TEXTS: dict[str, tuple[Callable[[str], str], bool]] = {
    "as it is": (lambda text: text, True),
    "with spaces behind": (lambda text: text + "   ", True),
    "with spaces before": (lambda text: "  " + text, False),
    "with a byte order mark": (lambda text: "\ufeff" + text, False),
    "an entry twice": (lambda text: text.replace('"format":', '"format": "", "format":', 1), False),
    "the same entry twice": (
        lambda text: text.replace('"domain":', '"domain": "null", "domain":', 1), False,
    ),
    "a tensor twice": (
        lambda text: text.replace('"0.bias":', '"0.bias": {}, "0.bias":', 1), False,
    ),
    "offsets twice": (
        lambda text: text.replace('"dtype":', '"data_offsets": [0, 0], "dtype":', 1), False,
    ),
    "another key of a tensor": (
        lambda text: text.replace('"dtype":', '"x": 1, "dtype":', 1), False,
    ),
    "a shape of floats": (lambda text: text.replace("[2, 2]", "[2.0, 2]"), False),
    "a shape of an exponent": (lambda text: text.replace("[2, 2]", "[2e0, 2]"), False),
    "a shape of texts": (lambda text: text.replace("[2, 2]", '["2", 2]'), False),
    "a shape of truth": (lambda text: text.replace("[2, 2]", "[true, 2]"), False),
    "offsets from minus zero": (lambda text: text.replace("[0, 32]", "[-0, 32]"), False),
    "offsets from false": (lambda text: text.replace("[0, 32]", "[false, 32]"), False),
    "offsets beyond": (lambda text: text.replace("[0, 32]", "[0, 33]"), False),
    "three offsets": (lambda text: text.replace("[0, 32]", "[0, 32, 32]"), False),
    "another type": (lambda text: text.replace("F64", "I64"), False),
    "a type in small letters": (lambda text: text.replace("F64", "f64"), False),
    "an unknown type": (lambda text: text.replace("F64", "F63"), False),
    "no metadata": (lambda text: text.replace("__metadata__", "metadata"), False),
    "metadata of null": (
        lambda text: json.dumps(json.loads(text) | {"__metadata__": None}), False,
    ),
    "metadata of a list": (lambda text: json.dumps(json.loads(text) | {"__metadata__": []}), False),
    "metadata of a number": (lambda text: text.replace('"domain": "null"', '"domain": 1'), False),
    "half a surrogate pair": (lambda text: text.replace('"a\\"', '"\\\\ud800\\"'), False),
    "a raw surrogate": (lambda text: text.replace('\\"a\\"', '\\"\ud800\\"'), False),
    "no end": (lambda text: text[:-1], False),
    "more behind": (lambda text: text + "{}", False),
    "a list": (lambda text: "[" + text + "]", False),
}  # fmt: skip
"""Changes of a small file's header, whose hash stays that of its content."""
