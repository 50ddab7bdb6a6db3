"""What the tests of all estimators share."""

import numpy as np
from scipy import sparse
from sklearn.base import clone

CLASSIFIERS_ALONE = (
    "the check takes whatever has predict_proba for a classifier and reads its classifier tags, which a "
    "ranker does not have; check_sparse_formats does the same work"
)
NOT_A_CLASSIFIER = {
    "check_estimator_sparse_array": CLASSIFIERS_ALONE,
    "check_estimator_sparse_matrix": CLASSIFIERS_ALONE,
}


def check_sparse_formats(model, X, y):
    """Sparse inputs of every format, with 32 and 64 bit indices, tell what dense ones tell."""
    X = np.where(X > -0.8, X, 0.0)  # sparse enough, and no two rows alike
    expected = clone(model).fit(X, y).decision_function(X)
    for make in (sparse.csr_array, sparse.csr_matrix):
        for kind in ("csr", "dok", "lil", "dia", "bsr", "csc", "coo"):
            given = make(X).asformat(kind)
            fitted = clone(model).fit(given, y)
            np.testing.assert_allclose(fitted.decision_function(given), expected, atol=1e-6)
            assert fitted.predict(given).shape == fitted.predict_proba(given).shape == expected.shape
    wide = sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype("int64"), wide.indptr.astype("int64")
    np.testing.assert_allclose(clone(model).fit(wide, y).decision_function(wide), expected, atol=1e-6)
