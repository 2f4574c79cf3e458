"""Rung 1, exact: every solver against a dense inverse written here, by zero and unit noise."""

from __future__ import annotations

import numpy as np
import pytest

from markovblanket.contracts import Noise, SolverError
from markovblanket.model.scatter import FactorScatter, from_columns, from_matrix
from markovblanket.solvers import CrossPrecision, Dense, Dual
from markovblanket.solvers._dual import blocks, gradients, preconditioner, products
from markovblanket.solvers._dual.gradients import Operator
from markovblanket.solvers.dual import conjugate_gradients

# Tight, so that conjugate gradients end at rounding and not at their (statistically ample) default.
SOLVERS = {"dense": Dense(), "dual": Dual(tolerance=1e-12)}
SIZES = {
    "tall": (3, 4, 30),
    "n < q": (2, 6, 4),
    "n = q": (2, 5, 5),
    "one query": (1, 5, 9),
    "one variable": (3, 1, 7),
    "one of each": (1, 1, 3),
    "q < p": (4, 2, 10),
    "one row": (2, 3, 1),
}


def problem(rng, p, q, n):
    X = rng.standard_normal((n, p + q)) + rng.standard_normal((n, 1))
    L = rng.standard_normal((p, p)) + 2 * np.eye(p)
    U, T = L @ L.T / 10, rng.exponential(0.1, (p, q))
    return U, T, from_columns(X[:, :p], X[:, p:]), X


def unit_noises(p, q, m):
    """The unit vectors of the noise space, p (2q + m) of them."""
    sizes = (p * q, p * m, p * q)
    for e in np.eye(sum(sizes)):
        Z1, Z2, Z3 = np.split(e, np.cumsum(sizes)[:2])
        yield Noise(Z1.reshape(p, q), Z2.reshape(p, m), Z3.reshape(p, q))


def precision_from_the_model_page(U, T, X, p):
    """``C = U ⊗ A + diag(1/T)`` written out entry by entry."""
    A = X[:, p:].T @ X[:, p:] + np.eye(X.shape[1] - p)
    q = len(A)
    C = np.empty((p, q, p, q))
    for i, j, k, m in np.ndindex(C.shape):
        C[i, j, k, m] = U[i, k] * A[j, m] + (1 / T[i, j] if (i, j) == (k, m) else 0)
    return C.reshape(p * q, p * q)


@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_to_dense_is_the_model_page(size):
    U, T, scatter, X = problem(np.random.default_rng(1), *size)
    expected = precision_from_the_model_page(U, T, X, size[0])
    np.testing.assert_allclose(CrossPrecision(U, T, scatter).to_dense(), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_zero_noise_is_the_mean(size, solver):
    p, q, _ = size
    U, T, scatter, X = problem(np.random.default_rng(2), *size)
    C = precision_from_the_model_page(U, T, X, p)
    mean = -np.linalg.solve(C, (X[:, :p].T @ X[:, p:]).ravel())
    m = len(scatter.F)
    zero = Noise(np.zeros((p, q)), np.zeros((p, m)), np.zeros((p, q)))
    W12, _ = solver.draw(U, T, scatter, zero)
    np.testing.assert_allclose(W12.ravel(), mean, rtol=1e-8, atol=1e-11)


@pytest.mark.parametrize("solver", SOLVERS.values(), ids=SOLVERS)
@pytest.mark.parametrize("size", SIZES.values(), ids=SIZES)
def test_unit_noise_is_a_square_root_of_the_covariance(size, solver):
    p, q, n = size
    U, T, scatter, X = problem(np.random.default_rng(3), *size)
    silent = FactorScatter(n, scatter.S11, scatter.F, np.zeros((p, q)))  # no S12: the draw is the noise part
    root = np.stack([solver.draw(U, T, silent, e)[0].ravel() for e in unit_noises(p, q, len(scatter.F))], axis=1)
    covariance = np.linalg.inv(precision_from_the_model_page(U, T, X, p))
    np.testing.assert_allclose(root @ root.T, covariance, rtol=1e-7, atol=1e-10 * np.abs(covariance).max())


@pytest.mark.parametrize("seed", range(5))
def test_the_residual_bounds_the_error_in_standard_deviations(seed):
    """``(w - exact)' C (w - exact) <= residual^2``: the claim by which the tolerance is chosen."""
    rng = np.random.default_rng(seed)
    U, T, scatter, _ = problem(rng, 3, 20, 60)
    noise = Noise.draw(rng, 3, 20, len(scatter.F))
    exact, _ = Dense().draw(U, T, scatter, noise)
    for tolerance in (1e-1, 1e-3, 1e-5):
        W12, info = Dual(tolerance=tolerance).draw(U, T, scatter, noise)
        error = (W12 - exact).ravel()
        assert info.residual <= tolerance
        assert (
            np.sqrt(error @ CrossPrecision(U, T, scatter).to_dense() @ error) <= info.residual * (1 + 1e-6) + 1e-9
        )


def test_scales_of_zero_and_of_any_size():
    """A scale of 0 pins its entry to an exact 0; scales from 1e-200 to 1e6 leave both solvers agreeing."""
    rng = np.random.default_rng(4)
    U, T, scatter, _ = problem(rng, 3, 12, 40)
    T = 10.0 ** rng.uniform(-8, 4, T.shape)
    T[0, :4], T[1, 2], T[2, 5] = 0.0, 1e-200, 1e6
    noise = Noise.draw(rng, 3, 12, len(scatter.F))
    dense, dual = (solver.draw(U, T, scatter, noise)[0] for solver in SOLVERS.values())
    assert (dual[0, :4] == 0).all()
    assert (dense[0, :4] == 0).all()
    np.testing.assert_allclose(dual / np.sqrt(T + (T == 0)), dense / np.sqrt(T + (T == 0)), rtol=1e-5, atol=1e-7)


def test_collinear_copies_and_columns_without_scatter():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 6))
    X = np.column_stack([X, X[:, 3], X[:, 3], np.zeros(30)])
    scatter = from_columns(X[:, :2], X[:, 2:])
    assert len(scatter.F) == 4  # the copies and the empty column add no row to the factor
    U, T = np.eye(2), rng.exponential(1, (2, 7))
    noise = Noise.draw(rng, 2, 7, len(scatter.F))
    dense, dual = (solver.draw(U, T, scatter, noise)[0] for solver in SOLVERS.values())
    np.testing.assert_allclose(dual, dense, rtol=1e-7, atol=1e-9)


def test_no_scatter_at_all_returns_the_prior():
    """``S = 0``: ``C = U ⊗ I + diag(1/T)`` and the factor has no rows."""
    scatter = from_matrix(np.zeros((5, 5)), n=1, p=2)
    assert scatter.F.shape == (0, 3)
    U, T = np.array([[2.0, 0.5], [0.5, 1.0]]), np.full((2, 3), 0.5)
    noise = Noise.draw(np.random.default_rng(0), 2, 3, 0)
    for solver in SOLVERS.values():
        expected = np.linalg.solve(U + 2 * np.eye(2), np.linalg.cholesky(U) @ noise.Z1 + np.sqrt(2) * noise.Z3)
        np.testing.assert_allclose(solver.draw(U, T, scatter, noise)[0], expected, rtol=1e-12)


def test_missed_tolerance_is_an_error_that_says_what_to_do():
    rng = np.random.default_rng(6)
    U, T, scatter, _ = problem(rng, 3, 40, 100)
    noise = Noise.draw(rng, 3, 40, len(scatter.F))
    with pytest.raises(SolverError, match=r"after 2 iterations .* above the tolerance 1e-03.*max_iterations"):
        Dual(max_iterations=2).draw(U, T, scatter, noise)


def test_the_preconditioner_is_exact_when_all_scales_are_equal():
    """With one scale for all, ``K`` *is* its Kronecker mean: one iteration, and the product that confirms it."""
    rng = np.random.default_rng(7)
    U, T, scatter, _ = problem(rng, 3, 50, 20)
    noise = Noise.draw(rng, 3, 50, len(scatter.F))
    _, info = Dual().draw(U, np.full_like(T, 0.3), scatter, noise)
    assert info.iterations == 2


def iterations(C, rhs):
    """Without a preconditioner, with the Kronecker mean, and with what stands out from it corrected."""
    F, G = C.scatter.F, blocks.factorise(C.root_T, C.U, C.root_U)[1]
    mean = preconditioner.KroneckerMean.of(blocks.unpacked(G @ preconditioner.weights(C.scatter)), C.scatter)
    nothing = preconditioner.KroneckerMean.of(np.zeros_like(C.U), C.scatter)
    of_means = [preconditioner.corrected(M, C.U[:, :0], F[:, :0]) for M in (nothing, mean)]
    return [
        conjugate_gradients(Operator(G, F.T), P, rhs, 1e-8, 1000)[1].iterations
        for P in (*of_means, preconditioner.of(C, G))
    ]


def test_the_preconditioner_pays_and_more_so_with_more_variables():
    """Iterations with and without it, to the same residual: the solver's central claim."""
    rng = np.random.default_rng(8)
    gain = []
    for q in (100, 400, 1600):
        spectrum = 10.0 ** np.linspace(1, -1, 60)  # correlated columns, as expression data are
        X = rng.standard_normal((60, 60)) * spectrum @ rng.standard_normal((60, 3 + q))
        C = CrossPrecision(np.eye(3), rng.exponential(2 / q, (3, q)), from_columns(X[:, :3], X[:, 3:]))
        rhs = rng.standard_normal((3, len(C.scatter.F)))
        plain, mean, _ = iterations(C, rhs)
        gain.append(plain / mean)
    assert gain == sorted(gain)
    assert gain[0] > 5
    assert gain[-1] > 20


def heavy_tailed(rng, p, q, n):
    """Scales of a horseshoe, over more than ten orders of magnitude, some columns with several large ones."""
    U, _, scatter, _ = problem(rng, p, q, n)
    T = np.minimum((1e-3 * rng.standard_cauchy((p, q))) ** 2, 10.0)
    T[:, :2], T[0, 2:6] = 1.0, 3.0
    assert T.max() / T.min() > 1e10
    return U, T, scatter


@pytest.mark.parametrize("size", [(3, 40, 100), (2, 60, 20), (1, 50, 60)], ids=str)
def test_draws_with_heavy_tailed_scales_are_the_dense_ones(size):
    """Entry by entry, in units of their prior standard deviations."""
    rng = np.random.default_rng([10, *size])
    U, T, scatter = heavy_tailed(rng, *size)
    for noise in (Noise.draw(rng, *T.shape, len(scatter.F)) for _ in range(3)):
        dense, dual = (solver.draw(U, T, scatter, noise)[0] for solver in SOLVERS.values())
        np.testing.assert_allclose(dual / np.sqrt(T), dense / np.sqrt(T), rtol=1e-7, atol=1e-8)


def test_what_stands_out_is_corrected_for_and_costs_no_iterations():
    """Heavy tails undo the mean; with the corrections they are as easy as light ones."""
    rng = np.random.default_rng(11)
    U, T, scatter = heavy_tailed(rng, 5, 80, 400)
    _, mean, corrected = iterations(CrossPrecision(U, T, scatter), rng.standard_normal((5, len(scatter.F))))
    assert mean > 50
    assert corrected < 20


def test_nothing_stands_out_under_a_laplace_prior():
    rng = np.random.default_rng(12)
    U, _, scatter, _ = problem(rng, 3, 200, 50)
    C = CrossPrecision(U, rng.exponential(0.01, (3, 200)), scatter)
    _, mean, corrected = iterations(C, rng.standard_normal((3, len(scatter.F))))
    assert mean == corrected


def test_the_corrected_mean_is_inverted():
    """``(I + Gbar ⊗ F F' + sum z z')^-1`` against the dense inverse."""
    rng = np.random.default_rng(13)
    _, _, scatter, _ = problem(rng, 3, 12, 7)
    m, V, places = len(scatter.F), rng.standard_normal((3, 4)), np.array([0, 5, 5, 11])
    Gbar, F = V @ V.T, scatter.F[:, places]
    Z = np.einsum("ak,bk->abk", V, F).reshape(3 * m, 4)
    dense = np.eye(3 * m) + np.kron(Gbar, np.diag(scatter.row_sizes)) + Z @ Z.T
    s = rng.standard_normal((3, m))
    mean = preconditioner.KroneckerMean.of(Gbar, scatter)
    found = gradients.solve(preconditioner.corrected(mean, V, F), s)
    np.testing.assert_allclose(found.ravel(), np.linalg.solve(dense, s.ravel()), rtol=1e-9, atol=1e-12)
    inverse = np.linalg.inv(dense - Z @ Z.T)
    leverages = np.diag(mean.leverages(V, F**2))
    np.testing.assert_allclose(leverages, np.einsum("ak,ab,bk->k", Z, inverse, Z), rtol=1e-9)


@pytest.mark.parametrize("size", [(1, 5), (4, 300), (9, 128), (3, 129)], ids=str)
def test_blocks_are_those_of_a_loop(size):
    p, q = size
    rng = np.random.default_rng(size)
    L = np.tril(rng.standard_normal((p, p))) + 3 * np.eye(p)
    U, T, Y = L @ L.T, 10.0 ** rng.uniform(-6, 2, size), rng.standard_normal(size)
    R, G = blocks.factorise(np.sqrt(T), U, L)
    product, solution = np.zeros_like(Y), blocks.solve(R, Y)
    blocks.add_multiply(G, 0, Y, product)
    for j in range(q):
        block = L.T @ np.linalg.inv(U + np.diag(1 / T[:, j])) @ L
        np.testing.assert_allclose(blocks.unpacked(G[:, j]), block, rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(product[:, j], block @ Y[:, j], rtol=1e-8, atol=1e-9)
        whitened = np.eye(p) + np.sqrt(np.outer(T[:, j], T[:, j])) * U
        np.testing.assert_allclose(solution[:, j], np.linalg.solve(whitened, Y[:, j]), rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("size", [(1, 4, 3), (3, 131, 7), (15, 257, 6), (16, 513, 5), (20, 3, 1)], ids=str)
def test_the_operator_is_its_formula(size):
    """``s + sum_j G_j s f_j f_j'``, in chunks of variables, with few rows and with many."""
    p, q, m = size
    rng = np.random.default_rng(size)
    s, Ft, G = rng.standard_normal((p, m)), rng.standard_normal((q, m)), rng.random((p * (p + 1) // 2, q))
    expected = s + sum(np.outer(blocks.unpacked(G[:, j]) @ s @ Ft[j], Ft[j]) for j in range(q))
    np.testing.assert_allclose(gradients.times(Operator(G, Ft), s), expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("p", [1, 3, products.LEAST_ROWS_FOR_BLAS])
def test_products_with_few_rows_and_many(p):
    rng = np.random.default_rng(p)
    s, Ft, total = rng.standard_normal((p, 7)), rng.standard_normal((10, 7)), rng.standard_normal((p, 7))
    product, before = np.empty((p, 10)), total.copy()
    products.times(s, Ft, product)
    products.add_times(product, Ft, total)
    np.testing.assert_allclose(product, s @ Ft.T, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(total, before + s @ Ft.T @ Ft, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("unit", [1e-4, 1.0, 1e4, 1e6, 1e8])
@pytest.mark.parametrize("through", ["columns", "matrix"])
def test_units_do_not_spoil_the_draw(unit, through):
    """A scatter is taken as given, in any unit: the dual draw stays within 1e-4 sd of the dense one."""
    rng = np.random.default_rng(9)
    X = unit * rng.standard_normal((50, 6))
    scatter = from_columns(X[:, :2], X[:, 2:]) if through == "columns" else from_matrix(X.T @ X, n=50, p=2)
    U, T = np.array([[2.0, 0.3], [0.3, 1.0]]) * unit**2, rng.exponential(1.0, (2, 4))
    noise = Noise.draw(rng, 2, 4, len(scatter.F))
    exact, _ = Dense().draw(U, T, scatter, noise)
    W12, info = Dual(tolerance=1e-5).draw(U, T, scatter, noise)
    error = (W12 - exact).ravel()
    assert info.residual <= 1e-5
    assert np.sqrt(error @ CrossPrecision(U, T, scatter).to_dense() @ error) < 1e-4


@pytest.mark.parametrize("wrong", [{"tolerance": 0}, {"tolerance": 10.0}, {"max_iterations": 0}])
def test_solvers_that_cannot_end_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        Dual(**wrong)
