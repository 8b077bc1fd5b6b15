"""Writes over memory that is read, or over one place several times: PyTorch 2.15's errors where it has them, and the right numbers everywhere else."""

import naru
import naru.nn.functional as F
import pytest

SHARED = "some elements of the input tensor and the written-to tensor refer to a single memory location"
TWICE = "more than one element of the written-to tensor refers to a single memory location"


def numbers():
    return naru.arange(6.0)


def integers():
    return naru.arange(4)


def out_of(f):
    """f(input, out) for an input that ends where out begins, by one element; and for the input itself."""

    def call(same):
        whole = naru.arange(1.0, 8.0) / 8
        if same:
            f(whole[:4], whole[:4].view(4))
        else:
            f(whole[:4], whole[3:])

    return call


# Functions that read an element after they may have written it.
ELEMENTWISE = {
    "add": lambda x, o: naru.add(x, x, out=o), "mul": lambda x, o: naru.mul(x, 2, out=o), "exp": lambda x, o: naru.exp(x, out=o), "where": lambda x, o: naru.where(x > 0.5, x, x, out=o),
    "clamp": lambda x, o: naru.clamp(x, 0, 1, out=o), "lerp": lambda x, o: naru.lerp(x, x, 0.5, out=o), "addcmul": lambda x, o: naru.addcmul(x, x, x, out=o),
    "maximum": lambda x, o: naru.maximum(x, x, out=o), "pow": lambda x, o: naru.pow(2.0, x, out=o), "cumsum": lambda x, o: naru.cumsum(x, 0, out=o), "sinc": lambda x, o: naru.sinc(x, out=o),
    "scatter_add": lambda x, o: naru.scatter_add(x, 0, naru.arange(4), naru.ones(4), out=o), "erf": lambda x, o: naru.special.erf(x, out=o), "gelu": lambda x, o: F.gelu(x) if o is None else naru.round(x, out=o),
}
# Those that may not even read what they write, element for element.
APART = {
    "cat": lambda x, o: naru.cat([x], out=o), "index_select": lambda x, o: naru.index_select(x, 0, naru.arange(4), out=o), "gather": lambda x, o: naru.gather(x, 0, naru.arange(4), out=o),
    "take": lambda x, o: naru.take(x, naru.arange(4), out=o), "cross": lambda x, o: naru.linalg.cross(x[None, 1:], x[None, 1:], out=o[None, :3]),
}
# Those that have their result before they write it.
ANY = {
    "softmax": lambda x, o: naru.softmax(x, 0, out=o), "mv": lambda x, o: naru.mv(naru.eye(4), x, out=o), "logsumexp": lambda x, o: naru.logsumexp(x[None], 0, out=o),
    "fft": lambda x, o: naru.fft.irfft(naru.fft.rfft(x), out=o), "quantile": lambda x, o: naru.quantile(x[None], 0.5, dim=0, out=o), "amax": lambda x, o: naru.amax(x[None], 0, out=o),
}


@pytest.mark.parametrize("name", ELEMENTWISE)
def test_out_may_be_an_operand_but_not_begin_within_one(name):
    out_of(ELEMENTWISE[name])(True)
    with pytest.raises(RuntimeError, match=SHARED):
        out_of(ELEMENTWISE[name])(False)


@pytest.mark.parametrize("name", APART)
def test_what_reads_elements_elsewhere_shares_nothing_with_out(name):
    for same in (False, True):
        with pytest.raises(RuntimeError, match=SHARED):
            out_of(APART[name])(same)


@pytest.mark.parametrize("name", ANY)
def test_a_result_that_is_made_elsewhere_may_go_anywhere(name):
    for at in (0, 3):
        whole = naru.arange(1.0, 8.0) / 8
        x, out = whole[:4], whole[at : at + 4]
        fresh = naru.empty(4)
        ANY[name](x.clone(), fresh)
        ANY[name](x, out)
        assert naru.equal(out, fresh)


REFUSED = {
    "copy_ forwards": lambda x: x[1:].copy_(x[:-1]), "copy_ backwards": lambda x: x[:-1].copy_(x[1:]), "assignment of a slice": lambda x: x.__setitem__(slice(1, None), x[:-1]),
    "copy_ of an element": lambda x: x[:3].copy_(x[2]), "copy_ of a transposed": lambda x: x[:4].view(2, 2).copy_(x[:4].view(2, 2).t()), "+= of a slice": lambda x: x[1:].__iadd__(x[:-1]),
    "add_ of an own element": lambda x: x.add_(x[0]), "mul_ of an own row": lambda x: x.view(2, 3).mul_(x[:3]), "addcmul_": lambda x: x[1:].addcmul_(x[:-1], x[:-1]), "lerp_": lambda x: x[1:].lerp_(x[:-1], 0.5),
    "clamp_": lambda x: x[1:].clamp_(min=x[:-1]), "data": lambda x: x[1:].data.copy_(x[:-1]), "sub_ by operator": lambda x: x[1:].data.__isub__(x[:-1]), "lt_": lambda x: x.lt_(x[2]),
    "out= of another size": lambda x: naru.add(x[:4], 1, out=x[1:3]), "out= transposed": lambda x: naru.neg(x[:4].view(2, 2), out=x[:4].view(2, 2).t()), "add_ as complex": lambda x: naru.view_as_complex(x.view(3, 2)).add_(x[:3]),
    "stack": lambda x: naru.stack([x[:3], x[3:]], out=x.view(2, 3)), "foreach": lambda x: naru._foreach_add_([x[1:]], [x[:-1]]),
}
REFUSED_OF_INTEGERS = {
    "positions in itself": lambda x: x.__setitem__(x, 1), "itself at positions": lambda x: x.__setitem__(naru.arange(4), x), "an own element at positions": lambda x: x.__setitem__(naru.tensor([0, 1]), x[0]),
    "index_put_": lambda x: x.index_put_((x,), naru.tensor(1)), "a mask's own values": lambda x: x.__setitem__(x > 0, x[1:]), "scatter_": lambda x: x.scatter_(0, x, 1), "scatter_ of a part": lambda x: x.scatter_(0, naru.tensor([0, 1]), x[2:]),
    "scatter_add_": lambda x: x.scatter_add_(0, x, x), "put_": lambda x: x.put_(x, x), "index_copy_": lambda x: x.index_copy_(0, naru.arange(4), x), "index_add_": lambda x: x.index_add_(0, naru.tensor([0, 1]), x[2:]),
}


@pytest.mark.parametrize("name", [*REFUSED, *REFUSED_OF_INTEGERS])
def test_nothing_is_written_over_what_is_still_read(name):
    x = integers() if name in REFUSED_OF_INTEGERS else numbers()
    before = x.clone()
    with pytest.raises(RuntimeError, match=SHARED):
        {**REFUSED, **REFUSED_OF_INTEGERS}[name](x)
    assert naru.equal(x, before)


# (call, what x = 0, 1, 2 ... is afterwards): PyTorch takes them, and the numbers are those of the operands as they were.
TAKEN = {
    "disjoint halves": (lambda x: x[:3].add_(x[3:]), [3, 5, 7, 3, 4, 5]), "every other": (lambda x: x[::2].add_(x[1::2]), [1, 1, 5, 3, 9, 5]), "itself": (lambda x: x.add_(x), [0, 2, 4, 6, 8, 10]),
    "columns": (lambda x: x.view(2, 3)[:, 1:].add_(x.view(2, 3)[:, :-1]), [0, 1, 3, 3, 7, 9]), "assigned columns": (lambda x: x.view(2, 3)[:, 1:].copy_(x.view(2, 3)[:, :-1]), [0, 0, 1, 3, 3, 4]),
    "flipped": (lambda x: x.copy_(x.flip(0)), [5, 4, 3, 2, 1, 0]), "an element": (lambda x: x.__setitem__(slice(0, 3), x[2]), [2, 2, 2, 3, 4, 5]), "an element everywhere": (lambda x: x.__setitem__(slice(None), x[3]), [3] * 6),
    "an expanded element": (lambda x: x[:3].add_(x[2:3].expand(3)), [2, 3, 4, 3, 4, 5]), "a row of one": (lambda x: x.__setitem__(slice(1, None), x[0:1]), [0] * 6), "fill_": (lambda x: x[1:].fill_(x[3]), [0, 3, 3, 3, 3, 3]),
    "masked_fill_": (lambda x: x.masked_fill_(x > 2, x[1]), [0, 1, 2, 1, 1, 1]), "a mask": (lambda x: x.__setitem__(x > 1, x[0]), [0, 1, 0, 0, 0, 0]), "masked_scatter_": (lambda x: x.masked_scatter_(x > 2, x), [0, 1, 2, 0, 1, 2]),
    "cumsum over itself": (lambda x: naru.cumsum(x, 0, out=x), [0, 1, 3, 6, 10, 15]), "out= of no elements": (lambda x: naru.add(x, 1, out=x[:0]), [1, 2, 3, 4, 5, 6]), "sum into its half": (lambda x: naru.sum(x.view(2, 3), 0, out=x[:3]), [3, 5, 7, 3, 4, 5]),
    "parts of complex numbers": (lambda x: naru.view_as_complex(x.view(3, 2)).real.add_(naru.view_as_complex(x.view(3, 2)).imag), [1, 1, 5, 3, 9, 5]), "addmm_": (lambda x: x[:4].view(2, 2).addmm_(x[:4].view(2, 2), naru.eye(2)), [0, 2, 4, 6, 4, 5]),
    "mm over itself": (lambda x: naru.mm(x[:4].view(2, 2), x[:4].view(2, 2), out=x[:4].view(2, 2)), [2, 3, 6, 11, 4, 5]), "a tuple's part": (lambda x: naru.sort(x, descending=True, out=(x, naru.empty(6, dtype=naru.int64))), [5, 4, 3, 2, 1, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", TAKEN)
def test_what_is_allowed_reads_the_numbers_as_they_were(name):
    call, want = TAKEN[name]
    x = numbers()
    call(x)
    assert x.tolist() == want


@pytest.mark.parametrize(
    "call",
    [
        lambda t: t.add_(1), lambda t: t.copy_(naru.ones(3)), lambda t: naru.add(naru.ones(3), 1, out=t), lambda t: naru.arange(3.0, out=t), lambda t: naru.amax(naru.eye(3), 0, out=t), lambda t: naru.mv(naru.eye(3), naru.ones(3), out=t),
        lambda t: naru.sort(naru.ones(3), out=(t, naru.empty(3, dtype=naru.int64))), lambda t: t.uniform_(), lambda t: t.exp_(), lambda t: t.scatter_(0, naru.arange(3), 1.0), lambda t: t.index_add_(0, naru.arange(3), naru.ones(3)),
        lambda t: t.lerp_(naru.ones(3), 0.5), lambda t: naru.tril(naru.ones(3, 3), out=t.expand(3, 3)), lambda t: naru.std(naru.eye(3), 0, out=t),
    ],
)  # fmt: skip
def test_no_place_is_written_several_times(call):
    x = numbers()
    with pytest.raises(RuntimeError, match=TWICE):
        call(x[:1].expand(3))
    assert x.tolist() == numbers().tolist()
