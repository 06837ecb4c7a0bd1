"""Hints for the commonest errors. They are notes of the exception: Python prints them below the message, and `str(error)` does not contain them.

The message itself is PyTorch's, since programs and tests match it. An error is raised as `raise hinted("shapes", RuntimeError(...))`.
"""

HINTS = {
    "shapes": "The inner sizes must agree: (n x k) @ (k x m). For a Linear the input's last size is its in_features: flatten images first (x.flatten(1)), or transpose (x.mT).",
    "dtypes": "One operand is of another dtype than the layer's weights: convert it (x.float(); NumPy's numbers are float64) or the model (model.double()). Compute below autocast to mix.",
    "class targets": "Targets are class numbers of dtype int64 (target.long()) of shape (N), or probabilities of the input's dtype and shape (N, C). For 0/1 targets of dtype float: binary_cross_entropy_with_logits.",
    "class range": "Classes are numbered from 0 to C - 1, where C is the input's size in dimension 1. Labels that begin at 1: target - 1. Padding: ignore_index.",
    "batch sizes": "Input and target have another number of rows. The target's shape is (N), not (N, 1): target.squeeze(1). A model of sequences: logits.flatten(0, 1), target.flatten().",
    "loss sizes": "The model's output has a dimension of size 1 that the target lacks, or the other way round: output.squeeze(1) or target.unsqueeze(1).",
    "probabilities": "The input has to be probabilities: apply sigmoid first, or use binary_cross_entropy_with_logits, which takes the model's output as it is.",
    "target range": "Targets are 0, 1 or numbers between: divide bytes of images by 255, and let numbers of classes be (target == 1).float().",
    "float targets": "Targets of this loss are of the input's dtype: target.to(input.dtype).",
    "backward twice": "A result of the last step is part of this one: detach what is carried on (hidden = hidden.detach()), sum losses before one backward(), or compute the shared part again.",
    "modified": "Write out of place instead (x = x + 1 for x += 1, a new tensor for x[i] = y), or change a copy: x.clone(). An optimizer's step between forward and backward does this, too.",
    "leaf": "Change values of a parameter below no_grad: with no_grad(): p.add_(...). To compute with the changed value: p.clone().",
    "no graph": "Nothing was recorded: the result was computed below no_grad or inference_mode, from detached tensors, numbers (.item()) or NumPy arrays, or no input or parameter has requires_grad=True.",
    "scalar": "Reduce the loss to one number first: loss.mean().backward(), or give the gradient of each element: loss.backward(torch.ones_like(loss)).",
    "broadcast": "Sizes are aligned from the last dimension; each pair must be equal or one of them 1. Insert dimensions by unsqueeze or x[:, None].",
    "devices": "Move data and model to one device: x.to(device), model.to(device). Tensors that a Module makes itself: register_buffer, or device=x.device.",
    "channels": "Images are (N, C, H, W): channels last are permuted by x.permute(0, 3, 1, 2), a single gray image gets its dimensions by x[None, None].",
    "embedding": "Indices must be from 0 to num_embeddings - 1: the table needs as many rows as the vocabulary, special and padding tokens included.",
    "indices": "Indices are of an integer type: x.long().",
    "stack": "Samples of a batch differ in size: pad them by a collate_fn (nn.utils.rnn.pad_sequence), or resize or crop them in the dataset.",
    "cat": "All sizes except that of dim must agree. Which dimension grows is dim: cat(tensors, dim=1) puts columns side by side, stack makes a new dimension.",
    "one element": "Reduce it first (x.sum(), x.mean()), choose an element (x[0]), or take all: x.tolist().",
    "ambiguous": "Ask for x.any() or x.all(); combine conditions by & and | instead of `and` and `or`; a tensor that may be None: `x is not None`.",
    "float result": "Convert first: x.float().mean(), or x.mean(dtype=torch.float32).",
    "float gradient": "Integers have no gradients: write 1.0 for 1, or x.float().requires_grad_().",
    "recurrent size": "Recurrent layers take (L, N, input_size), with batch_first=True (N, L, input_size).",
    "one value": "A batch of one has no variance: drop_last=True in the DataLoader, model.eval() where nothing is trained, or GroupNorm.",
    "init first": "Call super().__init__() in the class's __init__ before attributes are assigned.",
    "model for parameters": "An optimizer takes the model's parameters: SGD(model.parameters(), lr=0.1).",
    "view": "A view can't reorder elements in memory, as transposed, permuted, sliced and channels_last tensors need it: x.reshape(...) copies where it must.",
    "no parameters": "Layers in a plain list or dict are not found: nn.ModuleList, nn.ModuleDict. An iterator of parameters is empty after its first use: list(model.parameters()).",
    "prefix": 'The keys of one side begin with "{0}", as a wrapper of the model adds it: {{k.removeprefix("{0}"): v for k, v in state.items()}}.',
    "nested": 'This looks like a checkpoint that holds the weights under "{0}": load_state_dict(checkpoint["{0}"]).',
    "keys": "The file is of another architecture, or of another version of it. strict=False loads the keys that both have and returns the others.",
    "sizes differ": "Layers of other sizes (another number of classes): leave their keys out and load with strict=False, or build the model as it was saved.",
    "pickle": "Start method {0} pickles the dataset, collate_fn and worker_init_fn: lambdas and what is defined inside a function cannot be. Define them at the top of a module, or use worker_threads=True.",
    "global": "weights_only=False loads any class and runs code from the file. Use it only for files you trust.",
    "no driver": 'Choose the device that the machine has: device = "cuda" if torch.cuda.is_available() else "cpu". TENSORRT_LITE_CUDA=emulate runs CUDA programs slowly on the CPU.',
}


def hinted(str key, error, *parts):
    """The error with the hint of that name as a note; parts fill its braces."""
    hint = HINTS[key]
    error.add_note("Hint: " + (hint.format(*parts) if parts else hint))
    return error


cdef class LookUp:
    """The `__getattr__` of a module: an error that `find` raises for a missing name shows the line that asked for it and no frame of the package's."""
    cdef readonly object find

    def __init__(self, find):
        self.find = find

    def __call__(self, str name not None):
        try:
            return self.find(name)
        except AttributeError as error:
            if error.name != name:      # of a look-up inside
                raise
            found = error
        found.__traceback__ = None
        raise found


cdef class LazyModule:
    """A module that is imported when one of its names is first read: what a module on a lower floor, or one that must stay light, has of another."""
    cdef str path
    cdef object module

    def __init__(self, str path not None):
        self.path = path

    def __getattribute__(self, str name not None):       # in place of __getattr__, which is asked after an AttributeError: 0.4 us a read
        if self.module is None or name.startswith("__"):
            return self.first_read(name)
        return getattr(self.module, name)

    cdef object first_read(self, str name):
        if name.startswith("__"):           # of what looks through a module's globals
            try:
                return object.__getattribute__(self, name)
            except AttributeError:
                if self.module is None:
                    raise
        elif self.module is None:
            from importlib import import_module
            self.module = import_module(self.path)
        return getattr(self.module, name)

    def __setattr__(self, str name not None, value):
        if self.module is None:
            from importlib import import_module
            self.module = import_module(self.path)
        setattr(self.module, name, value)

    def __dir__(self):
        return [] if self.module is None else dir(self.module)

    def __repr__(self):
        return f"<lazy module {self.path!r}>"


def keyword_hint(function, error, str keyword):
    """The error for a keyword that a function does not have, with the nearest of its names and its signature as a note."""
    from difflib import get_close_matches
    signature = function.__signature__
    if keyword not in signature.parameters:
        near = get_close_matches(keyword, [name for name in signature.parameters], 1)
        found = f"did you mean '{near[0]}'? " if near else ""
        error.add_note(f"Hint: {found}The signature is {function.__name__}{signature}.")
    return error


def note_call(function, error, keywords):
    """keyword_hint for what Python says of functions written in Python and Cython; the signature where it only counts the arguments."""
    text = str(error)
    if text.startswith(f"{function.__name__}() takes ") and text.endswith(" given)"):
        error.add_note(f"Hint: The signature is {function.__name__}{function.__signature__}.")
    for keyword in keywords or ():
        if text.endswith(f"got an unexpected keyword argument '{keyword}'"):
            keyword_hint(function, error, keyword)
