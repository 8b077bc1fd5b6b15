"""torch.utils._pytree: flattens containers into leaves and a structure."""
from collections import OrderedDict, defaultdict, deque, namedtuple

import pytest
from naru.utils import _pytree as tree

Pair = namedtuple("Pair", "a b")
NESTED = {"b": 1, "a": [2, (3, None)], "c": Pair(4, 5), "d": OrderedDict(z=6), "e": defaultdict(list, {"q": 7}), "f": deque([8, 9], maxlen=3)}


def test_leaves_come_in_order_and_go_back_where_they_were():
    leaves, spec = tree.tree_flatten(NESTED)
    assert leaves == [1, 2, 3, None, 4, 5, 6, 7, 8, 9]
    again = tree.tree_unflatten(leaves, spec)
    assert again == NESTED and [type(v) for v in again.values()] == [type(v) for v in NESTED.values()] and again["f"].maxlen == 3
    assert (spec.num_leaves, spec.num_nodes, spec.num_children, spec.type) == (10, 17, 6, dict)
    assert spec == tree.tree_structure(NESTED) and spec != tree.tree_structure([1]) and hash(spec) == hash(tree.tree_structure(NESTED))


def test_a_description_reads_as_in_pytorch():
    assert repr(tree.tree_structure([1, {"a": (2,)}])) == "TreeSpec(list, None, [*,\n  TreeSpec(dict, ['a'], [TreeSpec(tuple, None, [*])])])"
    assert tree.treespec_pprint(tree.tree_structure([1, {"a": 2}])) == "[*, {'a': *}]" and repr(tree.LeafSpec()) == "*"


def test_maps_over_several_trees_and_over_some_types():
    assert tree.tree_map(lambda a, b: a + b, {"x": 1, "y": [2]}, {"y": [20], "x": 10}) == {"x": 11, "y": [22]}
    assert tree.tree_map_only(int, lambda x: -x, (1, "s", [2.0, 3])) == (-1, "s", [2.0, -3])
    assert tree.tree_map_with_path(lambda p, x: tree.keystr(p), {"a": [1, Pair(2, 3)]}) == {"a": ["['a'][0]", Pair("['a'][1].a", "['a'][1].b")]}
    assert tree.tree_any(lambda x: x == 3, NESTED) and not tree.tree_all(lambda x: x == 3, NESTED)
    assert tree._broadcast_to_and_flatten((1, [2, 3]), tree.tree_structure((0, [0, 0]))) == [1, 2, 3] and tree._broadcast_to_and_flatten([1], tree.tree_structure((0,))) is None


@pytest.mark.parametrize("call, kind, text", [
    (lambda: tree.tree_unflatten([1], tree.tree_structure([1, 2])), ValueError, r"`leaves` has length 1 but the spec refers to a pytree that holds 2 items \(TreeSpec"),
    (lambda: tree.tree_map(max, [1, 2], [1]), ValueError, "Node arity mismatch; expected 2, but got 1."),
    (lambda: tree.tree_map(max, {"a": 1}, {"b": 2}), ValueError, "Node keys mismatch; missing key.*'a'.*extra key.*'b'"),
    (lambda: tree.tree_unflatten([1], 3), TypeError, "Expected `treespec` to be an instance of PyTreeSpec but got item of type <class 'int'>."),
])
def test_what_does_not_fit_is_an_error(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_classes_can_be_registered_once():
    class Box:
        def __init__(self, inside):
            self.inside = inside

    tree.register_pytree_node(Box, lambda b: ([b.inside], None), lambda children, _: Box(*children))
    assert tree.tree_map(lambda x: x + 1, [Box(1)])[0].inside == 2
    with pytest.raises(ValueError, match="already registered"):
        tree.register_pytree_node(Box, None, None)


def test_registered_classes_can_be_removed_for_a_while():
    class Couple:
        def __init__(self, one, two):
            self.one, self.two = one, two

    with_keys = {"flatten_with_keys_fn": lambda p: ([("one", p.one), ("two", p.two)], None)}
    tree.register_pytree_node(Couple, lambda p: ([p.one, p.two], None), lambda values, _: Couple(*values), **with_keys)
    node = tree.SUPPORTED_NODES.pop(Couple)
    assert len(tree.tree_leaves(Couple(1, 2))) == 1 and Couple not in tree.SUPPORTED_NODES
    assert tree.SUPPORTED_NODES.pop(Couple, None) is None
    with pytest.raises(KeyError):
        del tree.SUPPORTED_NODES[Couple]
    tree.SUPPORTED_NODES[Couple] = node
    assert tree.tree_leaves(Couple(1, 2)) == [1, 2] and node.type is Couple
    assert [path for path, _ in tree.tree_flatten_with_path(Couple(1, 2))[0]] == [("one",), ("two",)]
