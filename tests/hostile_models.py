"""Model files by hand, and whether loader and checker take them; both say the same of each."""

import json
from collections.abc import Callable

from hostile import (
    F64,
    MIXED,
    STACKS,
    Parts,
    convolution,
    definitions,
    head,
    layer,
    mixing,
    nested,
    network,
    numbers,
    reflection,
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
    "more channels": (
        network(layer("widen", factor=2), layer("flatten"), in_shape=(1, 2, 2), inputs=8), True,
    ),
    "more channels than are read": (
        network(layer("widen", factor=3), layer("flatten"), in_shape=(1, 2, 2), inputs=8), False,
    ),
    "a million times the channels": (
        network(layer("widen", factor=2**20), layer("flatten"), in_shape=(1, 2, 2), inputs=8),
        False,
    ),
    "no times the channels": (
        network(layer("widen", factor=0), layer("flatten"), in_shape=(1, 2, 2), inputs=4), False,
    ),
    "more channels of no map": (
        network(layer("widen", factor=2), in_shape=(4,), inputs=8), False,
    ),
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
    **{f"a {kind} mixing": (mixing(kind), True) for kind in MIXED},
    **{f"a {kind} mixing of no absolute values": (mixing(kind, absolute=0), True)
       for kind in MIXED},
    **{f"a {kind} mixing of all absolute values": (mixing(kind, absolute=STACKS[kind][1]), True)
       for kind in MIXED},
    **{f"a {kind} mixing of too many absolute values":
       (mixing(kind, absolute=STACKS[kind][1] + 1), False) for kind in MIXED},
    **{f"a {kind} mixing with absolute {value!r}": (mixing(kind, absolute=value), False)
       for kind in ("window", "group")
       for value in (-1, True, False, 1.0, 0.0, "@-0@", [0], [1], [], None, "1", 2**40)},
    **{f"a {kind} mixing with map_size {value!r}": (mixing(kind, map_size=value), False)
       for kind in MIXED
       for value in ([4, 4], [2, 2], [3, 4], [2], [2, 4, 1], [], 4, "ab", [2.0, 4.0], [2, 0],
                     [2, True], [-2, -4], [2**20, 2**20], None)},
    **{f"a {kind} mixing without {name}": (mixing(kind, without=name), False)
       for kind, configuration in MIXED.items() for name in configuration},
    **{f"a {kind} mixing with one more entry": (mixing(kind, step=1), False) for kind in MIXED},
    **{f"a {kind} mixing with {name} {value!r}": (mixing(kind, **{name: value}), False)
       for kind in ("window", "fold")
       for name, value in (("size", 1), ("size", 4), ("size", 0), ("size", True), ("shift", 2),
                           ("shift", 2**28), ("shift", -1), ("shift", False), ("shift", [0]),
                           ("shift", 1.0))},
    **{f"a {kind} mixing that is not shifted": (mixing(kind, shift=0), True)
       for kind in ("window", "fold")},
    **{f"a group mixing with size {value!r}": (mixing("group", size=value), False)
       for value in (0, 1, 2, 3, 8, True, [4], 4.0, 2**27)},
    **{f"a {kind} mixing of a stack of {stack}": (mixing(kind, stack), False)
       for kind in MIXED
       for stack in ([0, STACKS[kind][1]], [STACKS[kind][0], 0], [3, STACKS[kind][1]],
                     [STACKS[kind][0], 5], [STACKS[kind][0], 16])},
    **{f"a {kind} mixing with a bias of {bias}": (mixing(kind, bias=bias), False)
       for kind in MIXED
       for bias in ([STACKS[kind][1]], [1, 1], [STACKS[kind][0], 1], [0], [0, 0],
                    [*STACKS[kind], 1])},
    "a mixing of matrices that are not square": (
        mixing("window")._replace(
            tensors={"0.weight": numbers([1, 32, 16]), "0.bias": numbers([1, 32])} | head(2, 64)
        ),
        False,
    ),
    "a mixing of one matrix without a stack": (
        mixing("window")._replace(
            tensors={"0.weight": numbers([32, 32]), "0.bias": numbers([32])} | head(2, 64)
        ),
        False,
    ),
    "a mixing of a vector": (mixing("window").with_header(in_shape="[64]"), False),
    "a mixing of other channels": (mixing("window").with_header(in_shape="[4, 2, 4]"), False),
    "a mixing of other maps": (mixing("window").with_header(in_shape="[8, 4, 2]"), False),
    "a mixing of a map of a pixel": (
        network(
            layer("position_mixing", absolute=0, map_size=[1, 1]), layer("flatten"),
            in_shape=(2, 1, 1), **{"0_weight": numbers([1, 2, 2]), "0_bias": numbers([1, 2])},
        ),
        True,
    ),
    "shifts of seven channels": (
        network(
            layer("shift_mixing", absolute=0, map_size=[1, 1]), layer("flatten"),
            in_shape=(7, 1, 1), inputs=7,
            **{"0_weight": numbers([1, 7, 7]), "0_bias": numbers([1, 7])},
        ),
        False,
    ),
    "a configuration in another order": (
        network(
            layer("window_mixing", shift=0, size=1, map_size=[1, 1], absolute=1), layer("flatten"),
            in_shape=(2, 1, 1), **{"0_weight": numbers([1, 2, 2]), "0_bias": numbers([1, 2])},
        ),
        True,
    ),
    "a layer of a branch in another order": (
        network(
            layer("convex_combination", branch=[{"configuration": {}, "kind": "abs"}]),
            **{"0_share": numbers([])},
        ),
        True,
    ),
    "nothing of what must be there": (
        network(layer("max_pool", size=0), layer("flatten"), in_shape=(1, 2, 2), inputs=4), False,
    ),
    **{f"a {kind} reflection": (reflection(kind), True) for kind in MIXED},
    **{f"a {kind} reflection with map_size {value!r}": (reflection(kind, map_size=value), False)
       for kind in MIXED
       for value in ([4, 4], [3, 4], [2], [2, 4, 1], [], 4, [2.0, 4.0], [2, True], [2**20, 2**20])},
    **{f"a {kind} reflection without {name}": (reflection(kind, without=name), False)
       for kind, configuration in MIXED.items() for name in configuration if name != "absolute"},
    **{f"a {kind} reflection with absolute values": (reflection(kind, absolute=1), False)
       for kind in MIXED},
    **{f"a window reflection with {name} {value!r}": (reflection("window", **{name: value}), False)
       for name, value in (("size", 1), ("size", 4), ("size", 0), ("shift", 2), ("shift", -1),
                           ("shift", False), ("shift", 1.0))},
    "a reflection that is not shifted": (reflection("fold", shift=0), True),
    **{f"a {kind} reflection with a weight of {weight}": (reflection(kind, weight), False)
       for kind in MIXED
       for weight in ([0, 2, STACKS[kind][1]], [STACKS[kind][0], 0, STACKS[kind][1]],
                      [3, 2, STACKS[kind][1]], [STACKS[kind][0], 2, 5], [STACKS[kind][0], 2, 16],
                      [2, STACKS[kind][1]], [*STACKS[kind], 2, 2])},
    "a reflection of all rows": (reflection("window", [1, 32, 32], [1, 32]), True),
    "a reflection of one row": (reflection("group", [2, 1, 32], [2, 1]), True),
    "a reflection of too many rows": (reflection("window", [1, 33, 32], [1, 33]), False),
    **{f"a {kind} reflection with a bias of {bias}": (reflection(kind, bias=bias), False)
       for kind in MIXED
       for bias in ([2], [1, 1], [STACKS[kind][0], 1], [0], [0, 0], [STACKS[kind][0], 2, 1])},
    "a reflection of a vector": (reflection("window").with_header(in_shape="[64]"), False),
    "a reflection of other maps": (reflection("window").with_header(in_shape="[8, 4, 2]"), False),
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
