"""What is drawn is what was given: coordinates of bars, curves, cells and dots against the numbers."""

import io
import itertools
from dataclasses import replace

import matplotlib as mpl
import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid
from scipy.stats import norm
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gaussianmlr import DataError, GaussianMLR, Prediction, metrics, to_ranks
from gaussianmlr.methods import Reading
from gaussianmlr.model.calibration import Calibration, compare
from gaussianmlr.model.scale import JndScale
from gaussianmlr.plots import (
    CoverageDisplay,
    CriticalDifferenceDisplay,
    GaussianDisplay,
    InterpolationDisplay,
    OrderGraphDisplay,
    PairsDisplay,
    ReliabilityDisplay,
    SignificanceDisplay,
)
from gaussianmlr.plots._style import COLOURS

mpl.use("agg")
import matplotlib.pyplot as plt

LABELS = ("sky", "sea", "sun", "fog")


@pytest.fixture(autouse=True)
def closed():
    yield
    plt.close("all")


def reading(count=40, seed=0):
    rng = np.random.default_rng(seed)
    mu = torch.from_numpy(rng.normal(0, 1.5, (count, 4)))
    sigma = torch.from_numpy(rng.uniform(0.4, 1.5, (count, 4)))
    truth = rng.normal(mu, 2 * sigma)
    ranks = np.where(truth > 0, 1 + ((truth[:, None] < truth[:, :, None]) & (truth > 0)[:, None]).sum(-1), 0)
    return Reading(mu, torch.special.ndtr(mu / sigma), mu, sigma), ranks


@pytest.fixture
def prediction():
    return Prediction.from_reading(reading()[0], LABELS, method="gmlr")


class Estimator:
    """The least that `from_estimator` needs."""

    def __init__(self, prediction):
        self.prediction = prediction

    def predict(self, inputs):
        return self.prediction[inputs]


def rendered(display):
    """Rendered in full; a picture of one colour would be none."""
    stream = io.BytesIO()
    display.figure_.savefig(stream, format="png")
    stream.seek(0)
    assert plt.imread(stream).std() > 0.01
    return display


def test_bars_are_the_significances(prediction):
    display = rendered(SignificanceDisplay.from_predictions(prediction, 4, truth=[2, 0, 1, -1]).plot())
    values = prediction.significance[4]
    order = np.argsort(-values)
    assert display.order_.tolist() == order.tolist()
    widths = [bar.get_width() for bar in display.ax_.patches]
    assert np.allclose(widths, values[order])
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == [LABELS[label] for label in order]
    colours = {
        mpl.colors.to_hex(bar.get_facecolor()).upper() for bar, v in zip(display.ax_.patches, widths) if v > 0
    }
    assert colours == {COLOURS[0]}
    (whiskers,) = [part for part in display.ax_.collections if len(part.get_segments()) == 4]
    ends = np.array([segment[:, 0] for segment in whiskers.get_segments()])
    assert np.allclose(ends, (values[:, None] + prediction.sigma[4][:, None] * [-1, 1])[order])
    line = next(line for line in display.ax_.lines if list(line.get_ydata()) == [0, 1])
    assert list(line.get_xdata()) == [0, 0]
    texts = [text.get_text() for text in display.ax_.texts]
    assert texts[-4:] == [{2: "1", 0: "–", 1: "2", -1: "?"}[[2, 0, 1, -1][label]] for label in order]


def test_bars_against_other_thresholds():
    virtual = SignificanceDisplay([3.0, 1.0], ["a", "b"], threshold=2.0).plot()
    assert any(list(line.get_xdata()) == [2.0, 2.0] for line in virtual.ax_.lines)
    grays = [mpl.colors.to_hex(bar.get_facecolor()) for bar in virtual.ax_.patches]
    assert grays[1] == "#999999"
    learned = SignificanceDisplay([5.0, 4.0, 1.0], ["a", "b", "c"], threshold=[4.5, 1.0, 3.0]).plot()
    (marks,) = learned.ax_.collections
    assert [segment[0, 0] for segment in marks.get_segments()] == [4.5, 1.0, 3.0]
    many = SignificanceDisplay(np.arange(40.0), [f"label {n}" for n in range(40)]).plot(most=10)
    assert len(many.ax_.patches) == 10
    assert "30 more" in many.ax_.get_xlabel()
    scores = Prediction(np.array([[1.0, -2.0]]), np.array([[0.7, 0.1]]), ("a", "b"), method="lsep")
    shown = SignificanceDisplay.from_predictions(scores).plot()
    assert shown.ax_.get_xlabel() == "score"
    assert [bar.get_width() for bar in shown.ax_.patches] == [1.0, -2.0]


def test_axes_say_the_unit(prediction):
    """Steps of one mean something in just noticeable differences alone."""
    jnd = replace(prediction, jnd=JndScale([0.0], [0.5]), scale=None)
    for one, unit in ((prediction, "significance"), (jnd, "significance (jnd)")):
        assert SignificanceDisplay.from_predictions(one).plot().ax_.get_xlabel() == unit
        assert GaussianDisplay.from_predictions(one).plot().ax_.get_xlabel().startswith(f"{unit};")
        assert InterpolationDisplay.from_predictions(one).plot().ax_.get_ylabel().startswith(f"{unit};")
    own = InterpolationDisplay.from_predictions(jnd, axis="height").plot()
    assert own.ax_.get_ylabel().startswith("height;")


def test_curves_are_gaussians(prediction):
    display = rendered(GaussianDisplay.from_predictions(prediction, 5).plot())
    for label, line in enumerate(display.lines_):
        x, y = line.get_data()
        assert np.allclose(y, norm.pdf(x, prediction.significance[5, label], prediction.sigma[5, label]))
        # Hardly anything of the curve is cut off.
        assert trapezoid(y, x) == pytest.approx(1.0, abs=0.01)
    named = {text.get_text() for text in display.ax_.texts}
    assert named == {LABELS[label] for label in np.flatnonzero(prediction.ranks[5] > 0)}
    narrow = GaussianDisplay([1.0], [1.0], ["a"], named=[False]).plot(span=(-1, 1))
    assert narrow.ax_.get_xlim() == (-1, 1)
    assert not narrow.ax_.texts
    with pytest.raises(DataError, match="'lsep' has no sigma"):
        GaussianDisplay.from_predictions(Prediction(np.ones((1, 1)), np.ones((1, 1)), ("a",), method="lsep"))


def test_names_of_close_peaks_do_not_lie_on_each_other():
    display = GaussianDisplay([1.0, 1.05, 1.1], [0.3, 0.3, 0.3], ["mountain", "building", "plant"]).plot()
    display.figure_.canvas.draw()
    boxes = [text.get_window_extent() for text in display.ax_.texts]
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert not boxes[one].padded(-1).overlaps(boxes[other].padded(-1))


def test_curves_in_a_part_of_a_figure_are_those_of_a_figure_of_its_size():
    alone = plt.figure(figsize=(3, 2))
    part = plt.figure(figsize=(6, 4)).subfigures(2, 2)[1, 0]
    drawn = []
    for place in (alone, part):
        display = GaussianDisplay([1.0, 1.05], [0.3, 0.3], ["sky", "sea"]).plot(place.subplots())
        drawn.append((display.ax_.get_ylim(), [text.xyann for text in display.ax_.texts]))
    assert drawn[0] == drawn[1]


def many(count=40, seed=0):
    rng = np.random.default_rng(seed)
    mu, sigma = rng.normal(1, 2, (12, count)), rng.uniform(0.5, 2, (12, count))
    names = [f"a rather long name {number}" for number in range(count)]
    return Prediction(mu, norm.cdf(mu / sigma), names, (mu, sigma), "gmlr")


def test_names_of_many_labels_stay_inside_and_apart():
    display = GaussianDisplay.from_predictions(many()).plot()
    display.figure_.canvas.draw()
    frame = display.ax_.get_window_extent()
    boxes = [text.get_window_extent().padded(-1) for text in display.ax_.texts]
    assert len(boxes) == 10
    assert all(box.y1 <= frame.y1 for box in boxes)
    assert not any(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_words_beside_bars_of_nothing_relevant_stay_inside_and_apart():
    display = SignificanceDisplay([-5.0, -9.0], ["sky", "sea"], truth=[0, 1]).plot()
    display.figure_.canvas.draw()
    words, truth = (text.get_window_extent() for text in display.ax_.texts[:2])
    assert [text.get_text() for text in display.ax_.texts[:2]] == ["relevant →", "true place"]
    assert not words.overlaps(truth)
    assert words.x1 <= display.ax_.get_window_extent().x1


def test_names_of_many_lines_stand_beside_the_axes():
    sequence = many()
    display = InterpolationDisplay.from_predictions(sequence, truth=sequence.ranks).plot()
    display.figure_.canvas.draw()
    legend = display.truth_ax_.get_legend().get_window_extent()
    panels = [ax.get_window_extent() for ax in (display.ax_, display.truth_ax_)]
    assert not any(legend.overlaps(panel) for panel in panels)
    assert legend.x1 <= display.figure_.bbox.x1
    assert min(panel.width for panel in panels) > 200


def test_points_that_fall_together_are_named_once_and_no_share_is_above_one():
    sure = np.array([[[0.5, 0.97], [0.03, 0.5]]])
    display = CoverageDisplay({"model": metrics.abstention(sure, [[2, 1]])}).plot()
    assert [text.get_text() for text in display.ax_.texts] == ["50%–95%"]
    assert display.ax_.get_ylim()[1] <= 1.05
    nothing = CoverageDisplay({"model": metrics.abstention(np.full((1, 1, 1), 0.5), [[1]])}).plot()
    assert [text.get_text() for text in nothing.ax_.texts] == ["no pair is compared"]


def test_pipelines_and_searches_and_orders_as_texts():
    x = np.random.default_rng(0).normal(size=(60, 3))
    texts = ["sky > sea" if row[0] > 0 else "sea" for row in x]
    ranker = GaussianMLR(n_members=1, epochs=1, hidden=8, random_state=0)
    pipeline = make_pipeline(StandardScaler(), ranker).fit(10 * x, texts)
    wanted = pipeline[-1].predict_full(pipeline[0].transform(10 * x))
    search = GridSearchCV(pipeline, {"gaussianmlr__dropout": [0.5]}, cv=2).fit(10 * x, texts)
    for estimator in (pipeline, search):
        found = SignificanceDisplay.from_estimator(estimator, 10 * x, 3)
        assert np.allclose(found.values, wanted.significance[3])
    ranks = to_ranks(texts).ranks
    for display in (ReliabilityDisplay, CoverageDisplay):
        one, other = (display.from_estimator(pipeline, 10 * x, truth) for truth in (texts, ranks))
        assert all(map(np.array_equal, one.curves["gmlr"], other.curves["gmlr"]))
    with pytest.raises(DataError, match="expected a model or an estimator"):
        SignificanceDisplay.from_estimator(object(), x)


def test_matrix_of_pairs(prediction):
    display = rendered(PairsDisplay.from_predictions(prediction, 2).plot())
    order = np.argsort(-prediction.scores[2])
    expected = prediction.p_above[2][np.ix_(order, order)]
    drawn = np.ma.filled(display.image_.get_array(), np.nan)
    assert np.isnan(np.diag(drawn)).all()
    off = ~np.eye(4, dtype=bool)
    assert np.allclose(drawn[off], expected[off])
    assert display.image_.get_clim() == (0, 1)
    for text in display.ax_.texts:
        column, row = text.get_position()
        assert text.get_text() == f"{100 * expected[row, column]:.0f}"
    assert len(display.ax_.texts) == 12
    assert [text.get_text() for text in display.ax_.get_yticklabels()] == [LABELS[label] for label in order]


@pytest.mark.parametrize("of", ["relevance", "pairs"])
def test_reliability_is_that_of_the_metrics(prediction, of):
    ranks = reading()[1]
    display = rendered(ReliabilityDisplay.from_predictions(prediction, ranks, of=of, bins=7).plot())
    chances = prediction.p_relevant if of == "relevance" else prediction.p_above
    curve = metrics.reliability(chances, ranks, bins=7)
    there = curve.counts > 0
    x, y = display.lines_["gmlr"].get_data()
    assert np.allclose(x, curve.predicted[there])
    assert np.allclose(y, curve.observed[there])
    sizes = display.ax_.collections[0].get_sizes()
    assert (np.argsort(sizes, kind="stable") == np.argsort(curve.counts[there], kind="stable")).all()
    text = display.ax_.get_legend().get_texts()[0].get_text()
    assert text == f"gmlr: ECE {metrics.ece(chances, ranks, bins=7):.3f}"


def test_reliability_before_and_after():
    said, ranks = reading(400)
    report = compare(said, torch.from_numpy(ranks), Calibration(2.0, 2.0))["pairs"]
    display = rendered(ReliabilityDisplay.from_report(report, about="pairs").plot())
    texts = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert texts == [
        f"before calibration: ECE {report.ece_before:.3f}",
        f"after calibration: ECE {report.ece_after:.3f}",
    ]
    assert len({line.get_color() for line in display.lines_.values()}) == 2


def test_coverage_is_that_of_the_metrics(prediction):
    ranks = reading()[1]
    steps = [0.5, 0.7, 0.9, 0.99]
    display = rendered(
        CoverageDisplay.from_predictions(prediction, ranks, confidences=steps, name="ours").plot()
    )
    curve = metrics.abstention(prediction.p_above, ranks, steps)
    x, y = display.lines_["ours"].get_data()
    there = curve.counts > 0
    assert np.allclose(x, curve.coverage[there])
    assert np.allclose(y, curve.accuracy[there])
    named = {text.get_text(): text.xy for text in display.ax_.texts}
    assert set(named) <= {"50%", "90%", "99%"}
    assert named["90%"] == pytest.approx((curve.coverage[2], curve.accuracy[2]))


def test_interpolation_and_its_truth(prediction):
    truth = np.linspace(1, 3, 40)[:, None] * [1.0, -1.0]
    display = rendered(
        InterpolationDisplay.from_predictions(prediction, labels=["sun", "sky"], truth=truth).plot()
    )
    for place, column in enumerate((2, 0)):
        assert np.allclose(display.lines_[place].get_ydata(), prediction.significance[:, column])
        assert np.allclose(display.truth_ax_.lines[place].get_ydata(), truth[:, place])
        assert display.truth_ax_.lines[place].get_color() == display.lines_[place].get_color()
        band = display.ax_.collections[place].get_paths()[0].vertices[:, 1]
        assert band.max() == pytest.approx((prediction.significance + prediction.sigma)[:, column].max())
    alone = InterpolationDisplay([[1.0], [2.0]], ["a"]).plot()
    assert alone.truth_ax_ is None
    with pytest.raises(DataError, match="no label 'rain'; there are sky, sea, sun, fog"):
        InterpolationDisplay.from_predictions(prediction, labels=["rain"])


def test_axes_and_estimators_that_are_given(prediction):
    figure, axes = plt.subplots(2, 3)
    ranks = reading()[1][:20]
    estimator = Estimator(prediction)
    some = slice(0, 20)
    displays = [
        SignificanceDisplay.from_estimator(estimator, some, 1),
        GaussianDisplay.from_estimator(estimator, some, 1),
        PairsDisplay.from_estimator(estimator, some, 1),
        ReliabilityDisplay.from_estimator(estimator, some, ranks, of="pairs"),
        CoverageDisplay.from_estimator(estimator, some, ranks),
        InterpolationDisplay.from_estimator(estimator, some, labels=["sky"]),
    ]
    for ax, display in zip(axes.flat, displays):
        assert display.plot(ax) is display
        assert display.ax_ is ax
        assert display.figure_ is figure
    assert plt.get_fignums() == [figure.number]  # no figure beside
    assert np.allclose(displays[0].values, prediction.significance[1])
    displays[0].plot(axes[0, 0])

    class Stranger:
        def predict(self, inputs):
            return np.ones(3)

    with pytest.raises(DataError, match="expected a model or an estimator of gaussianmlr"):
        SignificanceDisplay.from_estimator(Stranger(), None)


def test_labels_can_be_told_apart():
    """As people with the common colour blindnesses see them: no two of the colours look the same."""
    rgb = np.array([mpl.colors.to_rgb(colour) for colour in COLOURS]) ** 2.2
    # Vienot, Brettel and Mollon (1999), in linear RGB.
    protan = [[0.11238, 0.88762, 0], [0.11238, 0.88762, -0.0], [0.00401, -0.00401, 1]]
    deutan = [[0.29275, 0.70725, 0], [0.29275, 0.70725, -0.0], [-0.02234, 0.02234, 1]]
    for sight in (np.eye(3), np.array(protan), np.array(deutan)):
        seen = np.clip(rgb @ sight.T, 0, 1) ** (1 / 2.2)
        distances = np.linalg.norm(seen[:, None] - seen[None], axis=-1)
        assert distances[~np.eye(len(seen), dtype=bool)].min() > 0.1


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: SignificanceDisplay([1.0], ["a", "b"]), r"expected values of 2 labels, got shape \[1\]"),
        (lambda: SignificanceDisplay([1.0, np.nan], ["a", "b"]), "finite numbers"),
        (lambda: GaussianDisplay([1.0], [0.0], ["a"]), "expected sigma above 0, got 0.0"),
        (lambda: PairsDisplay(np.ones((2, 3)), ["a", "b"]), r"shape \[2, 2\], got \[2, 3\]"),
        (lambda: PairsDisplay([[2.0]], ["a"]), r"expected probabilities in \[0, 1\]"),
        (lambda: ReliabilityDisplay({}), "one reliability curve or more"),
        (lambda: CoverageDisplay({}), "one coverage curve or more"),
        (lambda: InterpolationDisplay([1.0], ["a"]), r"expected values of shape \[frames, 1\]"),
    ],
)
def test_bad_numbers_are_named(make, message):
    with pytest.raises(DataError, match=message):
        make()


def test_an_order_graph_has_the_pairs_of_the_order():
    names = ("mountain", "sky", "cloud", "sun", "fog")
    order = "mountain > sky = cloud"
    display = OrderGraphDisplay.from_order(order, names, edges="all").plot()
    ranks = to_ranks([order], names).ranks[0]
    naive = {(a, b) for i, a in enumerate(names) for j, b in enumerate(names) if ranks[i] > ranks[j]}
    assert set(display.edges_) == naive
    assert len(display.edges_) == len(naive)
    columns = {name: place[0] for name, place in display.positions_.items()}
    assert columns["mountain"] < columns["sky"] == columns["cloud"] < columns["sun"] == columns["fog"]
    nearest = OrderGraphDisplay.from_order(order, names).plot()  # five labels: neighbours only
    assert set(nearest.edges_) == naive - {("mountain", "sun"), ("mountain", "fog")}
    assert OrderGraphDisplay([1, -1, 0], list("abc")).plot().edges_ == [("a", "c")]  # unknown: left out
    assert OrderGraphDisplay([0, 0], list("ab")).plot().edges_ == []


def test_an_order_graph_shows_probabilities():
    chances = np.array([[0.5, 0.76, 0.98], [0.24, 0.5, 0.92], [0.02, 0.08, 0.5]])
    display = OrderGraphDisplay([2, 1, 0], ["a", "b", "c"], p_above=chances).plot()
    texts = [text.get_text() for text in display.ax_.texts if "." in text.get_text()]
    assert sorted(texts) == ["0.76", "0.92", "0.98"]
    with pytest.raises(DataError, match="expected probabilities of shape"):
        OrderGraphDisplay([2, 1], list("ab"), p_above=chances)
    with pytest.raises(DataError, match="3 ranks for 2 labels"):
        OrderGraphDisplay([2, 1, 0], list("ab"))


def test_critical_differences_join_what_is_not_told_apart():
    display = CriticalDifferenceDisplay([3.9, 1.1, 1.9, 2.8], "dabc", critical=1.0).plot()
    assert display.groups_ == [("a", "b"), ("b", "c")]
    table = np.array([[0.9, 0.8, 0.1]] * 8)
    built = CriticalDifferenceDisplay.from_table(table, ["x", "y", "z"]).plot()
    assert built.ranks.tolist() == [1, 2, 3]
    assert built.groups_ == [("x", "y"), ("y", "z")]
    with pytest.raises(DataError, match="expected two or more"):
        CriticalDifferenceDisplay([1.0], ["a"], critical=1.0)


def test_the_papers_colours_and_a_legend_off_the_marks():
    display = SignificanceDisplay(
        [3.0, -1.0], ["a", "b"], threshold=[1.0, 1.0], palette="paper", title="a title"
    ).plot()
    display.figure_.canvas.draw()
    green, red = (np.array(bar.get_facecolor()[:3]) for bar in display.ax_.patches)
    assert green.argmax() == 1
    assert red.argmax() == 0
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.y0 >= display.ax_.get_window_extent().y1 - 1  # above the axes, where no bar is
    title = display.ax_.title if display.ax_.title.get_text() else display.ax_._left_title
    assert title.get_window_extent().y0 >= legend.y0
    with pytest.raises(DataError, match="palette is 'loud'"):
        SignificanceDisplay([1.0], ["a"], palette="loud")
