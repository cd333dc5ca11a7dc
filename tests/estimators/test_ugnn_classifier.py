"""The scikit-learn estimator: its checks, its company, and what its distances mean."""

import pickle
from typing import Any
from unittest import SkipTest

import joblib
import numpy as np
import pandas as pd
import pytest
import torch
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris, load_wine, make_blobs
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

import unitmargin as um

QUICK = um.UGNNClassifier(epochs=12, random_state=0)
"""For the checks, which ask for little accuracy."""

LEARNT = um.UGNNClassifier(epochs=20, batch_size=8, random_state=0)
"""Learns the blobs of these tests."""

FEWEST_CHECKS = 40
"""scikit-learn 1.9 has 55 checks for such a classifier, versions from 1.6 on somewhat fewer."""


@parametrize_with_checks([QUICK])
def test_every_check_of_scikit_learn_passes_and_none_is_skipped(
    estimator: Any, check: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SCIPY_ARRAY_API", "1")  # without it, that of array API inputs is skipped
    try:
        check(estimator)
    except SkipTest as skipped:
        pytest.fail(f"skipped: {skipped}")


def test_the_checks_are_many() -> None:
    assert len(list(estimator_checks_generator(QUICK))) >= FEWEST_CHECKS


@pytest.fixture(scope="module")
def blobs() -> tuple[NDArray[Any], NDArray[Any]]:
    X, y = make_blobs(120, n_features=3, centers=3, random_state=1)
    return StandardScaler().fit_transform(X), np.array(["no", "perhaps", "yes"])[y]


@pytest.fixture(scope="module")
def fitted(blobs: tuple[NDArray[Any], NDArray[Any]]) -> Any:
    return clone(LEARNT).fit(*blobs)


@pytest.mark.parametrize("load", [load_iris, load_wine, load_breast_cancer])
def test_the_defaults_are_accurate_on_small_tables(load: Any) -> None:
    X, y = load(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(
        X, y, test_size=0.5, random_state=0, stratify=y
    )
    pipeline = make_pipeline(StandardScaler(), um.UGNNClassifier(random_state=0))
    assert pipeline.fit(X_train, y_train).score(X_test, y_test) >= 0.93


def test_labels_are_those_of_y_and_are_certified(fitted: Any, blobs: Any) -> None:
    X, y = blobs
    assert fitted.classes_.tolist() == ["no", "perhaps", "yes"] == list(fitted.frozen_.classes)
    certificate = fitted.certificate(X)
    assert isinstance(certificate, um.Certificate)
    assert (fitted.classes_[certificate.label.numpy()] == fitted.predict(X)).all()
    assert fitted.score(X, y) == (fitted.predict(X) == y).mean() > 0.9
    assert (fitted.radius(X) == certificate.radius.numpy()).all()


def test_the_decision_of_many_classes_is_the_margin_inside_and_negative_outside(
    fitted: Any, blobs: Any
) -> None:
    X, _ = blobs
    decision, certificate = fitted.decision_function(X), fitted.certificate(X)
    logits = fitted.frozen_(torch.from_numpy(X)).numpy()
    truth = [[row[k] - max(np.delete(row, k)) for k in range(3)] for row in logits]
    np.testing.assert_array_equal(decision, truth)
    assert (decision.max(1) == certificate.margin.numpy()).all()
    assert ((decision > 0).sum(1) == 1).all()


def test_the_decision_of_two_classes_is_positive_for_the_second(blobs: Any) -> None:
    X, y = blobs
    two = clone(QUICK).fit(X, y == "yes")
    decision = two.decision_function(X)
    assert decision.shape == (len(X),)
    assert ((decision > 0) == two.predict(X)).all()
    np.testing.assert_allclose(abs(decision), two.radius(X), rtol=1e-5, atol=1e-9)


def test_the_radius_is_about_the_distance_of_the_closest_adversarial(
    fitted: Any, blobs: Any
) -> None:
    X, _ = blobs
    radius, nearest = fitted.radius(X), um.closest_adversarial(fitted.frozen_, X)
    assert nearest.flipped.all()
    assert (fitted.predict(nearest.flipped_point.numpy()) != fitted.predict(X)).all()
    ratio = radius / nearest.flipped_distance.numpy()
    assert ratio.max() < 1
    assert np.median(ratio) > 0.95


def test_no_step_shorter_than_the_radius_changes_the_label(fitted: Any, blobs: Any) -> None:
    X, _ = blobs
    steps = np.random.RandomState(0).randn(50, *X.shape)
    steps *= (0.999 * fitted.radius(X) / np.linalg.norm(steps, axis=2))[..., None]
    labels = fitted.predict((X + steps).reshape(-1, X.shape[1])).reshape(50, -1)
    assert (labels == fitted.predict(X)).all()


def test_numbers_beyond_float32_are_refused_as_such(blobs: Any) -> None:
    X, y = blobs
    with pytest.raises(
        ValueError, match="must be finite in float32, .* or write it in a larger unit"
    ):
        um.UGNNClassifier().fit(X * 1e200, y)


def test_outliers_are_predicted_and_certified_on_request_alone(fitted: Any, blobs: Any) -> None:
    outlier = 1e3 * blobs[0][:2]
    assert set(fitted.predict(outlier)) <= set(fitted.classes_)
    assert np.isfinite(fitted.decision_function(outlier)).all()
    with pytest.raises(ValueError, match="the domain of the network, got entries"):
        fitted.radius(outlier)
    with pytest.raises(ValueError, match="the domain of the network, got entries"):
        fitted.certificate(outlier)
    assert (fitted.radius(outlier, domain="any") >= 0).all()


@pytest.mark.parametrize(
    ("low", "high", "domain"),
    [(0, 1, (-1, 2)), (-3, 5, (-11, 13)), (7, 7, (0, 14)), (0, 0, (-1, 1))],
)
def test_the_domain_is_the_range_of_x_and_its_width_on_each_side(
    low: float, high: float, domain: tuple[float, float]
) -> None:
    X = np.array([[low, high]] * 4 + [[high, low]] * 4, dtype=np.float64)
    assert um.UGNNClassifier(epochs=1).fit(X, [0, 1] * 4).frozen_.domain == domain


def test_numbers_too_large_to_be_evaluated_are_no_prediction(fitted: Any) -> None:
    for answer in (fitted.predict, fitted.decision_function):
        with pytest.raises(ValueError, match="X must be small enough to be evaluated"):
            answer(np.array([[0.0, 0.0, 0.0], [1.7e308, 1.7e308, 1.7e308]]))


def weights(classifier: Any) -> list[torch.Tensor]:
    return list(classifier.frozen_.buffers())


def same(left: Any, right: Any) -> bool:
    return all(map(torch.equal, weights(left), weights(right)))


def test_equal_random_states_give_equal_weights(fitted: Any, blobs: Any) -> None:
    assert same(clone(LEARNT).fit(*blobs).fit(*blobs), fitted)
    assert not same(clone(LEARNT).set_params(random_state=1).fit(*blobs), fitted)
    first, second = (
        clone(QUICK).set_params(random_state=np.random.RandomState(3)).fit(*blobs) for _ in "ab"
    )
    assert same(first, second)


def numpy_state() -> str:
    return repr(np.random.get_state(legacy=False))  # noqa: NPY002


def test_a_fit_leaves_the_global_generators_alone(blobs: Any) -> None:
    before = torch.get_rng_state(), numpy_state()
    clone(QUICK).fit(*blobs)
    assert torch.equal(before[0], torch.get_rng_state())
    assert before[1] == numpy_state()


def test_without_a_random_state_every_fit_differs_and_numpy_seeds_it(blobs: Any) -> None:
    free = clone(QUICK).set_params(random_state=None, epochs=1)
    kept = np.random.get_state()  # noqa: NPY002
    try:
        np.random.seed(5)  # noqa: NPY002
        first, second = clone(free).fit(*blobs), clone(free).fit(*blobs)
        np.random.seed(5)  # noqa: NPY002
        third = clone(free).fit(*blobs)
    finally:
        np.random.set_state(kept)  # noqa: NPY002
    assert same(first, third)
    assert not same(first, second)


def test_a_pickle_answers_the_same_to_the_last_bit(fitted: Any, blobs: Any, tmp_path: Any) -> None:
    X, _ = blobs
    before = fitted.decision_function(X), fitted.radius(X)  # with a proof, which stays behind
    joblib.dump(fitted, tmp_path / "classifier")
    for copy in (pickle.loads(pickle.dumps(fitted)), joblib.load(tmp_path / "classifier")):
        assert (copy.predict(X) == fitted.predict(X)).all()
        assert (copy.decision_function(X) == before[0]).all()
        assert (copy.radius(X) == before[1]).all()


def test_a_clone_has_the_parameters_and_no_fit(fitted: Any, blobs: Any) -> None:
    copy = clone(fitted)
    assert copy.get_params() == fitted.get_params()
    for answer in (copy.predict, copy.decision_function, copy.radius, copy.certificate):
        with pytest.raises(NotFittedError):
            answer(blobs[0])


def test_the_frozen_network_is_saved_like_any_other(fitted: Any, blobs: Any, tmp_path: Any) -> None:
    X, _ = blobs
    um.save(fitted.frozen_, tmp_path / "model.safetensors")
    loaded = um.load(tmp_path / "model.safetensors")
    assert loaded.classes == ("no", "perhaps", "yes")
    assert (um.certify(loaded, X).radius.numpy() == fitted.radius(X)).all()


def test_it_is_cross_validated_in_two_processes(blobs: Any) -> None:
    pipeline = make_pipeline(StandardScaler(), LEARNT)
    one, two = (cross_val_score(pipeline, *blobs, cv=2, n_jobs=jobs) for jobs in (None, 2))
    assert (one == two).all()
    assert one.mean() > 0.9


def test_a_grid_search_takes_numbers_of_numpy(blobs: Any) -> None:
    grid = {
        "ugnnclassifier__epochs": np.arange(2, 5, 2),
        "ugnnclassifier__temperature": np.linspace(0.1, 0.2, 2, dtype=np.float32),
        "ugnnclassifier__hidden": [None, (3,), np.array([3, 3])],
    }
    search = GridSearchCV(make_pipeline(StandardScaler(), QUICK), grid, cv=2, error_score="raise")
    best = search.fit(*blobs).best_estimator_[-1]
    assert len(search.cv_results_["params"]) == 12
    assert best.n_iter_ == search.best_params_["ugnnclassifier__epochs"]


@pytest.mark.parametrize("classes", [2, 3])
def test_it_is_calibrated(blobs: Any, classes: int) -> None:
    X, y = blobs
    y = y if classes == 3 else y == "yes"
    calibrated = CalibratedClassifierCV(LEARNT, cv=2).fit(X, y)
    probabilities = calibrated.predict_proba(X)
    assert probabilities.shape == (len(X), classes)
    np.testing.assert_allclose(probabilities.sum(1), 1)
    assert calibrated.score(X, y) > 0.9
    assert not hasattr(QUICK, "predict_proba")


def test_feature_names_are_kept_and_asked_for(blobs: Any) -> None:
    X, y = blobs
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    named = clone(QUICK).fit(frame, pd.Series(y))
    assert named.feature_names_in_.tolist() == ["a", "b", "c"]
    assert named.n_features_in_ == 3
    assert (named.radius(frame) == clone(QUICK).fit(X, y).radius(X)).all()
    for answer in (named.predict, named.radius):
        with pytest.raises(ValueError, match="feature names"):
            answer(frame[["c", "b", "a"]])


@pytest.mark.parametrize("kind", [np.float32, np.float64, np.float16, np.int64, torch.tensor])
def test_x_is_of_any_real_type(blobs: Any, kind: Any) -> None:
    X = np.round(10 * blobs[0])
    given = torch.tensor(X) if kind is torch.tensor else X.astype(kind)
    y = blobs[1] == "yes"
    assert same(clone(QUICK).fit(given, y), clone(QUICK).fit(X, y))
    if isinstance(given, torch.Tensor):
        assert same(clone(QUICK).fit(given.requires_grad_(), y), clone(QUICK).fit(X, y))


def test_sample_weights_are_refused_by_name(blobs: Any) -> None:
    X, y = blobs
    with pytest.raises(TypeError, match="^sample_weight must be left out of fit, got a value; "):
        clone(QUICK).fit(X, y, sample_weight=np.ones(len(y)))
    clone(QUICK).fit(X, y, sample_weight=None)
    with pytest.raises(TypeError, match="^sample_weight must be left out of fit"):
        make_pipeline(QUICK).fit(X, y, ugnnclassifier__sample_weight=np.ones(len(y)))


def test_a_warm_start_goes_on_from_the_weights(blobs: Any) -> None:
    X, y = blobs
    warm = clone(QUICK).set_params(warm_start=True, epochs=3).fit(X, y)
    first, loss = weights(warm), warm.history_[0].loss
    warm.fit(X, y)
    assert warm.n_iter_ == 6
    assert len(warm.history_) == 3
    assert warm.history_[0].loss < loss
    assert not all(map(torch.equal, first, weights(warm)))
    warm.fit(0.01 * X, y)
    assert len(warm.radius(X)) == len(X), "the domain of the fits before is kept"
    with pytest.raises(ValueError, match="y must hold the classes of the fit before"):
        warm.fit(X, y == "yes")
    others = {"hidden": (2,), "activation": "groupsort3", "linear": "bjorck", "head": "bounded"}
    for name, value in others.items():
        before = warm.get_params()[name]
        with pytest.raises(
            ValueError, match="hidden, activation, linear and head must be those of"
        ):
            warm.set_params(**{name: value}).fit(X, y)
        warm.set_params(**{name: before})
    with pytest.raises(ValueError, match="features"):
        warm.fit(X[:, :2], y)
    assert warm.set_params(warm_start=False).fit(X[:, :2], y == "yes").n_iter_ == 3


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("error", [MemoryError, KeyboardInterrupt])
@pytest.mark.parametrize("place", ["train", "freeze"])
def test_a_fit_that_ends_early_leaves_the_estimator_as_it_was(
    blobs: Any, monkeypatch: pytest.MonkeyPatch, place: str, error: type[BaseException], warm: bool
) -> None:
    X, y = pd.DataFrame(blobs[0], columns=["a", "b", "c"]), blobs[1]
    new, known = (clone(QUICK).set_params(epochs=1, warm_start=warm) for _ in range(2))
    known.fit(X, y)
    before, decision = dict(vars(known)), known.decision_function(X)

    def fail(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(f"unitmargin.estimators.ugnn_classifier.{place}", fail)
    for estimator, given in ((new, X), (known, X if warm else X[["a", "b"]])):
        with pytest.raises(error):
            estimator.fit(given, y)
    with pytest.raises(NotFittedError):
        new.predict(X)
    assert not hasattr(new, "n_features_in_")
    assert vars(known) == before
    assert (known.decision_function(X) == decision).all()


def test_progress_is_told_when_asked_for(blobs: Any, capfd: pytest.CaptureFixture[str]) -> None:
    clone(QUICK).set_params(epochs=2).fit(*blobs)
    assert capfd.readouterr() == ("", "")
    clone(QUICK).set_params(epochs=2, verbose=True).fit(*blobs)
    assert "epoch 2/2  loss" in "".join(capfd.readouterr())


def test_columns_of_zeros_make_room_for_classes(blobs: Any) -> None:
    X, y = blobs
    with pytest.raises(ValueError, match=r"at least 2 features for 3 classes, got 1 feature\(s\)"):
        clone(QUICK).fit(X[:, :1], y)
    wide = np.hstack([X[:, :1], np.zeros_like(X)])
    assert (clone(QUICK).fit(wide, y).radius(wide) > 0).any()


@pytest.mark.parametrize(("features", "classes", "width"), [(9, 3, 9), (90, 3, 64), (90, 70, 70)])
def test_default_layers_are_as_wide_as_x_and_not_much_wider_than_classes(
    features: int, classes: int, width: int
) -> None:
    X, y = np.random.RandomState(0).rand(140, features), np.arange(140) % classes
    frozen = um.UGNNClassifier(epochs=1).fit(X, y).frozen_
    assert frozen.head.size == (classes, width)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"epochs": 0}, "epochs must be greater than 0, got 0; correct the value"),
        ({"learning_rate": "fast"}, "learning_rate must be a valid number, got 'fast'"),
        ({"loss": "hinge"}, "loss must be one of multi_margin, offset_cross_entropy, got 'hinge'"),
        ({"head": "bjorck"}, "head must be one of bounded, manifold, simplex, lbfgs, got 'bjorck'"),
        ({"dtype": "half"}, "dtype must be one of float32, float64, got 'half'"),
        ({"activation": "relu"}, "activation must be"),
        ({"hidden": 8}, r"hidden must be a list of whole numbers, got 8; pass widths"),
        ({"hidden": (2.5,)}, r"hidden must be a whole number, got 2.5; pass widths"),
        ({"hidden": (0,)}, r"hidden must be >= 1, got 0; pass widths"),
    ],
)
def test_a_wrong_parameter_is_named_by_fit(
    parameters: dict[str, Any], message: str, blobs: Any
) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        um.UGNNClassifier(**parameters).fit(*blobs)


def test_one_class_has_no_boundary(blobs: Any) -> None:
    with pytest.raises(ValueError, match="y must hold at least 2 classes, got 1 class, 'only'; "):
        clone(QUICK).fit(blobs[0], ["only"] * len(blobs[0]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_frozen_weights_have_the_type_asked_for(blobs: Any, dtype: str) -> None:
    frozen = um.UGNNClassifier(epochs=1, dtype=dtype).fit(*blobs).frozen_
    assert str(frozen.dtype) == f"torch.{dtype}"


@pytest.mark.parametrize("name", ["warm_start", "verbose"])
def test_switches_are_no_words(name: str, blobs: Any) -> None:
    with pytest.raises(TypeError, match=f"^{name} must be True or False, got 'False'; "):
        clone(QUICK).set_params(**{name: "False"}).fit(*blobs)
