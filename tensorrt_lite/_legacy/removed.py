"""Functions of linear algebra that PyTorch removed: each raises PyTorch's own message, which says what took its place. Imported on first use."""

from __future__ import annotations

from typing import Any, NoReturn

__all__ = ["eig", "lstsq", "matrix_rank", "solve", "symeig"]

_SINCE = "This function was deprecated since version 1.9 and is now removed."


def eig(input: Any, eigenvectors: bool = False, *, e: Any = None, v: Any = None) -> NoReturn:
    """RuntimeError: removed; use `linalg.eig`."""
    raise RuntimeError(
        f"{_SINCE} `torch.linalg.eig` returns complex tensors of dtype `cfloat` or `cdouble` rather than real tensors mimicking complex tensors.\n\n"
        "L, _ = torch.eig(A) should be replaced with:\nL_complex = torch.linalg.eigvals(A)\n\nand\n\n"
        "L, V = torch.eig(A, eigenvectors=True) should be replaced with:\nL_complex, V_complex = torch.linalg.eig(A)"
    )


def lstsq(input: Any, A: Any, *, out: Any = None) -> NoReturn:
    """RuntimeError: removed; use `linalg.lstsq`."""
    raise RuntimeError(
        f"{_SINCE} `torch.lstsq` is deprecated in favor of `torch.linalg.lstsq`.\n`torch.linalg.lstsq` has reversed arguments and does not return the QR "
        "decomposition in the returned tuple (although it returns other information about the problem).\n\n"
        "To get the QR decomposition consider using `torch.linalg.qr`.\n\nThe returned solution in `torch.lstsq` stored the residuals of the solution in the "
        "last m - n columns of the returned value whenever m > n. In torch.linalg.lstsq, the residuals are in the field 'residuals' of the returned named "
        "tuple.\n\nThe unpacking of the solution, as in\nX, _ = torch.lstsq(B, A).solution[:A.size(1)]\nshould be replaced with:\n"
        "X = torch.linalg.lstsq(A, B).solution"
    )


def matrix_rank(input: Any, tol: Any = None, symmetric: bool = False, *, out: Any = None) -> NoReturn:
    """RuntimeError: removed; use `linalg.matrix_rank`."""
    raise RuntimeError(
        f"{_SINCE}\nPlease use the `torch.linalg.matrix_rank` function instead. "
        "The parameter 'symmetric' was renamed in `torch.linalg.matrix_rank()` to 'hermitian'."
    )


def solve(input: Any, A: Any, *, out: Any = None) -> NoReturn:
    """RuntimeError: removed; use `linalg.solve`."""
    raise RuntimeError(
        f"{_SINCE} `torch.solve` is deprecated in favor of `torch.linalg.solve`. `torch.linalg.solve` has its arguments reversed and does not return the "
        "LU factorization.\n\nTo get the LU factorization see `torch.lu`, which can be used with `torch.lu_solve` or `torch.lu_unpack`.\n"
        "X = torch.solve(B, A).solution should be replaced with:\nX = torch.linalg.solve(A, B)"
    )


def symeig(input: Any, eigenvectors: bool = False, upper: bool = True, *, out: Any = None) -> NoReturn:
    """RuntimeError: removed; use `linalg.eigh`."""
    raise RuntimeError(
        f"{_SINCE} The default behavior has changed from using the upper triangular portion of the matrix by default to using the lower triangular portion."
        "\n\nL, _ = torch.symeig(A, upper=upper) should be replaced with:\nL = torch.linalg.eigvalsh(A, UPLO='U' if upper else 'L')\n\nand\n\n"
        "L, V = torch.symeig(A, eigenvectors=True) should be replaced with:\nL, V = torch.linalg.eigh(A, UPLO='U' if upper else 'L')"
    )
