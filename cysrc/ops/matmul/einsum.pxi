# ---- sums of products over named dimensions ------------------------------------------------------------------------

@cython.wraparound(True)
@cython.boundscheck(True)
cdef object pair_product(object a, object b, list summed):
    """Two operands aligned to the same dimensions, multiplied and summed over `summed` (which stay as size 1)."""
    cdef int i, n = a.dim()
    cdef TensorBase x, y
    batch, left, right, both, sum_a, sum_b = [], [], [], [], [], []
    x = <TensorBase?>a
    y = <TensorBase?>b
    for i in range(n):
        if i in summed:
            if x.sizes[i] != 1 and y.sizes[i] != 1:
                both.append(i)
            elif x.sizes[i] != 1:
                sum_a.append(i)
            elif y.sizes[i] != 1:
                sum_b.append(i)
        elif x.sizes[i] != 1 and y.sizes[i] != 1:
            batch.append(i)
        elif y.sizes[i] != 1:
            right.append(i)
        else:
            left.append(i)
    if sum_a:
        a = a.sum(sum_a, keepdim=True)
    if sum_b:
        b = b.sum(sum_b, keepdim=True)
    if not both:
        return a * b
    rest = [i for i in range(n) if i in summed]
    shape_a, shape_b = a.shape, b.shape
    sizes = [count(shape_a, batch), count(shape_a, left), count(shape_a, both), count(shape_b, right)]
    others = [i for i in rest if i not in both]
    pa = a.permute(batch + left + both + right + others).reshape((sizes[0], sizes[1], sizes[2]))
    pb = b.permute(batch + both + right + left + others).reshape((sizes[0], sizes[2], sizes[3]))
    if sizes[0] == 1 and not batch:
        r = _ops.mm(pa.squeeze(0), pb.squeeze(0))
    else:
        r = _ops.bmm(pa, pb)
    order = batch + left + right + rest
    r = r.reshape([shape_a[i] for i in batch + left] + [shape_b[i] for i in right] + [1] * len(rest))
    if order == list(range(n)):
        return r
    back = [0] * n
    for i, d in enumerate(order):
        back[d] = i
    return r.permute(back)


@cython.wraparound(True)
@cython.boundscheck(True)
cdef object count(object shape, list dims):
    n = 1
    for d in dims:
        n *= shape[d]
    return n


cdef enum:
    ELLIPSIS_LABEL = -1


cdef str label_text(int label):
    return chr(ord("A") + label) if label < 26 else chr(ord("a") + label - 26)


@cython.wraparound(True)
@cython.boundscheck(True)
cdef list parse_labels(str text, str equation, int start):
    """The labels of one operand: 0..51, and one ELLIPSIS_LABEL for an ellipsis."""
    cdef list labels = []
    cdef int i = 0
    while i < len(text):
        c = text[i]
        if c == " ":
            i += 1
        elif c == ".":
            if ELLIPSIS_LABEL in labels:
                raise RuntimeError("einsum(): found '.' for an operand for which an ellipsis was already found")
            if text[i:i + 3] != "...":
                raise RuntimeError("einsum(): found '.' that is not part of any ellipsis")
            labels.append(ELLIPSIS_LABEL)
            i += 3
        elif "A" <= c <= "Z":
            labels.append(ord(c) - ord("A"))
            i += 1
        elif "a" <= c <= "z":
            labels.append(ord(c) - ord("a") + 26)
            i += 1
        else:
            raise RuntimeError(f"einsum(): invalid subscript given at index {start + i} in the equation string, subscripts must be in [a-zA-Z]")
    return labels


cdef list sublist_labels(object sublist):
    cdef list labels = []
    for x in sublist:
        if x is Ellipsis:
            labels.append(ELLIPSIS_LABEL)
        elif not 0 <= x < 52:
            raise RuntimeError(f"einsum(): expected subscripts to be within range [0, 52), but got {x}")
        else:
            labels.append(x)
    return labels


@cython.wraparound(True)
@cython.boundscheck(True)
@autocast_policy(cuda="lower")
def einsum(*args):
    """einsum(equation, *operands) or einsum(op1, sublist1, ..., [out]): sums of products over labelled dimensions."""
    cdef list inputs = [], operands
    cdef object output = None
    if not args:
        raise ValueError("einsum(): must specify the equation string and at least one operand, or at least one operand and its subscripts list")
    if isinstance(args[0], str):
        equation = args[0]
        operands = list(args[1:])
        if len(operands) == 1 and isinstance(operands[0], (list, tuple)):
            operands = list(operands[0])
        before, arrow, after = equation.partition("->")
        position = 0
        for part in before.split(","):
            inputs.append(parse_labels(part, equation, position))
            position += len(part) + 1
        if arrow:
            output = parse_labels(after, equation, len(before) + 2)
    else:
        operands = list(args[0::2]) if len(args) % 2 == 0 else list(args[0:-1:2])
        inputs = [sublist_labels(x) for x in args[1::2]]
        if len(args) % 2:
            output = sublist_labels(args[-1])
    if not operands:
        raise RuntimeError("einsum(): must provide at least one operand")
    for t in operands:
        as_tensor_arg(t, "einsum", "operands")
    if len(inputs) > len(operands):
        raise RuntimeError("einsum(): fewer operands were provided than specified in the equation")
    if len(inputs) < len(operands):
        raise RuntimeError("einsum(): more operands were provided than specified in the equation")
    return contract(operands, inputs, output)


cdef enum:
    EXACT_OPERANDS = 6           # operands up to which every order is weighed; more: the cheapest pair first
    SMALL_CONTRACTION = 100000   # multiplications from left to right below which another order is not worth looking for

cdef object one = 1              # sets of dimensions are Python integers: there may be 64


cdef object extent(object dims, list sizes):
    """The number of elements over a set of dimensions, a bit of an integer each."""
    r = 1
    for p, size in enumerate(sizes):
        if dims >> p & 1:
            r *= size
    return r


cdef object kept(object dims, list others, object out):
    """The dimensions that the output or another operand has too."""
    for x in others:
        out = out | x
    return dims & out


cdef list cheapest_pairs(list dims, list sizes, object out):
    """The pairs to multiply, each by positions in the list of what is left, to which its product is appended. The cost of a pair
    is the number of its multiplications."""
    cdef int i, j, k, n = len(dims), subset, part
    left_to_right, first = 0, dims[0]
    for i in range(1, n):
        left_to_right += extent(first | dims[i], sizes)
        first = kept(first | dims[i], dims[i + 1:], out)
    if n < 3 or left_to_right < SMALL_CONTRACTION or not search_enabled():
        return [(0, 1)] + [(i, 0) for i in range(n - 2, 0, -1)]
    if n > EXACT_OPERANDS:
        return greedy_pairs(dims, sizes, out)
    reach, ways = {}, {}                             # by subset of the operands: dimensions of its product; cost and first part
    for subset in range(1, 1 << n):
        inside, outside = [dims[k] for k in range(n) if subset >> k & 1], [dims[k] for k in range(n) if not subset >> k & 1]
        if len(inside) == 1:
            reach[subset], ways[subset] = inside[0], (0, 0)
            continue
        union = 0
        for x in inside:
            union = union | x
        reach[subset] = kept(union, outside, out)
        best = None
        part = (subset - 1) & subset
        while part > subset ^ part:                  # each pair of parts once
            cost = ways[part][0] + ways[subset ^ part][0] + extent(reach[part] | reach[subset ^ part], sizes)
            if best is None or cost < best[0]:
                best = (cost, part)
            part = (part - 1) & subset
        ways[subset] = best
    pairs, order, present = [], [], [1 << k for k in range(n)]
    append_pairs((1 << n) - 1, ways, order)
    for part, subset in order:
        pairs.append((present.index(part), present.index(subset)))
        present = [x for x in present if x != part and x != subset] + [part | subset]
    return pairs


cdef list greedy_pairs(list dims, list sizes, object out):
    cdef int i, j
    pairs = []
    while len(dims) > 1:
        best = None
        for j in range(len(dims)):
            for i in range(j):
                cost = extent(dims[i] | dims[j], sizes)
                if best is None or cost < best[0]:
                    best = (cost, i, j)
        i, j = best[1], best[2]
        pairs.append((i, j))
        union = dims[i] | dims[j]
        dims = dims[:i] + dims[i + 1:j] + dims[j + 1:]
        dims.append(kept(union, dims, out))
    return pairs


cdef int append_pairs(int subset, dict ways, list order) except -1:
    cdef int part = ways[subset][1]
    if part:
        append_pairs(part, ways, order)
        append_pairs(subset ^ part, ways, order)
        order.append((part, subset ^ part))
    return 0


cdef bint search_enabled() except -1:
    from tensorrt_lite.backends import opt_einsum
    return opt_einsum.enabled


cdef object multiply_out(list operands, list sizes, int n_out):
    """The product of operands aligned to `sizes`, summed over the dimensions from n_out on, which stay as size 1."""
    cdef int n = len(sizes), p, i, j, k
    if len(operands) == 1:
        return operands[0].sum(list(range(n_out, n)), keepdim=True) if n_out < n else operands[0]
    dims = [sum([one << p for p in range(n) if t.shape[p] != 1]) for t in operands]
    out = (one << n_out) - 1
    for i, j in cheapest_pairs(dims, sizes, out):
        a, b, union = operands[i], operands[j], dims[i] | dims[j]
        operands = [operands[k] for k in range(len(operands)) if k != i and k != j]
        dims = [dims[k] for k in range(len(dims)) if k != i and k != j]
        left = kept(union, dims, out)
        operands.append(pair_product(a, b, [p for p in range(n_out, n) if not left >> p & 1]))
        dims.append(left)
    return operands[0]


@cython.wraparound(True)
@cython.boundscheck(True)
cdef object contract(list operands, list inputs, object output):
    """Align all operands to (output labels, summed labels), then multiply them in pairs, summing what is used up."""
    cdef int ellipsis = 0, n, i
    counts = {}
    for i, (t, labels) in enumerate(zip(operands, inputs)):
        n = t.dim() - len([x for x in labels if x != ELLIPSIS_LABEL])
        if ELLIPSIS_LABEL in labels:
            if n < 0:
                raise RuntimeError(f"einsum(): the number of subscripts in the equation ({len(labels) - 1}) is more than the number of dimensions ({t.dim()}) for operand {i}")
            ellipsis = max(ellipsis, n)
        elif n != 0:
            raise RuntimeError(
                f"einsum(): the number of subscripts in the equation ({len(labels)}) does not match the number of dimensions ({t.dim()}) for operand {i} and no ellipsis was given")
        for x in labels:
            if x != ELLIPSIS_LABEL:
                counts[x] = counts.get(x, 0) + 1
    if output is None:
        output = ([ELLIPSIS_LABEL] if any([ELLIPSIS_LABEL in x for x in inputs]) else []) + sorted([x for x in counts if counts[x] == 1])
    # every dimension gets a place: output labels first, ellipsis dimensions where the output has them, summed ones behind
    places = {}
    n = 0
    for x in output:
        if x == ELLIPSIS_LABEL:
            for i in range(ellipsis):
                places[("...", i)] = n + i
            n += ellipsis
            continue
        if x in places:
            raise RuntimeError(f"einsum(): output subscript {label_text(x)} appears more than once in the output")
        if x not in counts:
            raise RuntimeError(f"einsum(): output subscript {label_text(x)} does not appear in the equation for any input operand")
        places[x] = n
        n += 1
    n_out = n
    if ellipsis and ("...", 0) not in places:
        for i in range(ellipsis):
            places[("...", i)] = n + i
        n += ellipsis
    for x in counts:
        if x not in places:
            places[x] = n
            n += 1
    aligned = []
    sizes = [1] * n
    for i, (t, labels) in enumerate(zip(operands, inputs)):
        names = []
        for x in labels:
            if x == ELLIPSIS_LABEL:
                extent = t.dim() - len(labels) + 1
                names += [("...", ellipsis - extent + j) for j in range(extent)]
            else:
                names.append(x)
        j = 0
        while j < len(names):                        # a repeated label: the diagonal
            first = names.index(names[j])
            if first < j:
                if t.shape[first] != t.shape[j]:
                    raise RuntimeError(
                        f"einsum(): subscript {label_text(names[j])} is repeated for operand {i} but the sizes don't match, {t.shape[j]} != {t.shape[first]}")
                t = t.diagonal(0, first, j)
                t = t.movedim(-1, first)
                del names[j]
            else:
                j += 1
        order = sorted(range(len(names)), key=lambda d: places[names[d]])
        if order != list(range(len(names))):
            t = t.permute(order)
        used = [places[names[d]] for d in order]
        shape = [1] * n
        for d, p in enumerate(used):
            shape[p] = t.shape[d]
            if shape[p] != 1:
                if sizes[p] != 1 and sizes[p] != shape[p]:
                    raise RuntimeError(f"einsum(): operands do not broadcast with remapped shapes [original->remapped]: sizes {sizes[p]} and {shape[p]} of one subscript differ (operand {i})")
                sizes[p] = shape[p]
        if len(used) != n:
            position = 0
            for p in range(n):
                if p not in used:
                    t = t.unsqueeze(p)
        aligned.append(t)
    r = multiply_out(aligned, sizes, n_out)
    if n > n_out:
        r = r.reshape(r.shape[:n_out])
    elif r is operands[0]:
        r = r.view(r.shape)
    return r
