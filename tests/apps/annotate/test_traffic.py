"""Answers that go out and come in: our manifests, Label Studio, Argilla; and how far people agree."""

import io
import json
from itertools import combinations

import numpy as np
import pytest
from PIL import Image

from gaussianmlr.apps.annotate import (
    Found,
    Store,
    disagreement,
    export_answers,
    import_answers,
    manifest_of,
    overview,
    read_items,
)
from gaussianmlr.apps.annotate.suggestions import uncertainty
from gaussianmlr.apps.annotate.thumbnails import jpeg_of
from gaussianmlr.data import check, read_images, read_table
from gaussianmlr.errors import DataError
from gaussianmlr.model.prediction import Prediction, Significances

LABELS = ("sea", "sky", "sun")


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    for name in ("a.png", "deep/b.png", "deep/c.jpg"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (30, 20), (len(name) * 9, 40, 80)).save(folder / name)
    return folder


@pytest.fixture
def store(photos, tmp_path):
    with Store(tmp_path / "store", create=True) as made:
        made.bring(read_items(photos), LABELS)
        ann, bob = made.person("Ann").id, made.person("Bob").id
        made.answer(1, ann, [["sky"], ["sea", "sun"]], token="1", note='says "hm", twice', seconds=4)
        made.answer(1, bob, [["sea"], ["sky"]], token="2", seconds=2)
        made.answer(2, ann, [], token="3", seconds=6)
        made.answer(3, ann, None, token="4", seconds=1)
        yield made


@pytest.mark.parametrize("suffix", ["csv", "tsv", "jsonl", "parquet"])
def test_a_manifest_reads_back_to_what_people_said(store, photos, suffix):
    assert export_answers(store, photos / f"manifest.{suffix}") == 3
    data = read_images(photos, labels=LABELS)
    assert data.ids == ("a.png", "deep/b.png")
    assert data.rankers == ("Ann", "Bob")
    assert data.by_ranker.tolist() == [[[1, 2, 1], [2, 1, 0]], [[0, 0, 0], [-1, -1, -1]]]
    assert check(photos, labels=LABELS).errors == ()


@pytest.mark.parametrize("method", ["borda", "thurstone"])
def test_an_aggregated_manifest_is_the_order_of_all(store, photos, method):
    export_answers(store, photos / "manifest.csv", method)
    alone = read_images(photos, labels=LABELS)
    export_answers(store, photos / "manifest.csv", overwrite=True)
    joined = read_images(photos, labels=LABELS, aggregate=method)
    assert alone.by_ranker is None
    assert alone.ranks.tolist() == joined.ranks.tolist()


def test_a_manifest_that_could_not_be_read_is_not_written(store, tmp_path):
    with pytest.raises(DataError, match="not below its folder"):
        export_answers(store, tmp_path / "else" / "manifest.csv")
    with pytest.raises(DataError, match="unknown kind"):
        export_answers(store, tmp_path / "manifest.xlsx")
    assert not (tmp_path / "else").exists()
    with Store(tmp_path / "new", create=True) as empty:
        empty.bring(Found("text", "t", {"a": "b"}), LABELS)
        with pytest.raises(DataError, match="holds no order yet"):
            manifest_of(empty)


def test_a_file_that_is_there_stays_unless_it_may_be_replaced(store, photos):
    (photos / "manifest.csv").write_text("mine")
    with pytest.raises(DataError, match=r"manifest\.csv is there already.*--overwrite"):
        export_answers(store, photos / "manifest.csv")
    assert (photos / "manifest.csv").read_text() == "mine"
    assert export_answers(store, photos / "manifest.csv", overwrite=True) == 3
    assert read_images(photos, labels=LABELS).rankers == ("Ann", "Bob")


def test_labels_added_later_are_unknown_to_those_who_answered_before(store, photos):
    store.bring(read_items(photos), (*LABELS, "fog"))
    store.answer(3, store.person("Bob").id, [["fog"]], token="5")
    export_answers(store, photos / "manifest.csv")
    data = read_images(photos, labels=(*LABELS, "fog"))
    assert data.by_ranker[:, :, 3].tolist() == [[-1, -1], [-1, -1], [-1, 1]]


def test_rows_export_to_a_table_that_trains(tmp_path):
    (tmp_path / "t.csv").write_text("id,a,b\nx,1,2\ny,3,4\n")
    with Store(tmp_path / "s", create=True) as store:
        store.bring(read_items(tmp_path / "t.csv"), LABELS)
        store.answer(2, store.person("Ann").id, [["sun"]], token="1", note="not a feature")
        export_answers(store, tmp_path / "out.csv")
    data = read_table(tmp_path / "out.csv", labels=LABELS)
    assert (data.features.tolist(), data.feature_names, data.orders()) == ([[3.0, 4.0]], ("a", "b"), ["sun"])


def test_what_is_exported_goes_on_in_another_store_once(store, photos, tmp_path):
    export_answers(store, photos / "manifest.csv")
    with Store(tmp_path / "second", create=True) as other:
        other.bring(read_items(photos), LABELS)
        dan = other.person("Ann").id
        other.answer(1, dan, [["sun"]], token="mine")
        assert import_answers(other, photos / "manifest.csv") == (2, 1)
        assert import_answers(other, photos / "manifest.csv") == (0, 3)
        assert [one.ranking for one in other.answers(1)] == ["sun", "sea > sky"]
        import_answers(other, photos / "manifest.csv", replace=True)
        mine = other.answers(1, dan)[0]
        assert (mine.ranking, mine.note, mine.seconds) == ("sky > sea = sun", 'says "hm", twice', 4.0)
        assert other.undo(dan) is not None


def ranked(file, person, value, **more):
    result = {"from_name": "rank", "to_name": "l", "type": "ranker", "value": {"ranker": value}}
    annotation = {"completed_by": person, "lead_time": 2.5, "result": [result], **more}
    return {"id": 7, "data": {"image": file, "items": [{"id": "sky"}]}, "annotations": [annotation]}


def bring(store, tmp_path, records, form, **settings):
    (tmp_path / "export.json").write_text(json.dumps(records))
    found = import_answers(store, tmp_path / "export.json", form, **settings)
    names = {one.id: one.name for one in store.people()}
    said = {(store.item(one.item).name, names[one.person]): one for one in store.answers()}
    return found, said


def test_label_studio_without_buckets(store, tmp_path):
    tasks = [
        ranked("/data/upload/3/0a1b2c3d-a.png", {"email": "cy@x.org"}, {"rank": ["sun", "sky", "sea"]}),
        ranked("/data/local-files/?d=deep/b.png", 12, ["sky", "sun"]),
        ranked("https://host/deep/c.jpg?v=1", 12, {"rank": []}, was_cancelled=True),
    ]
    found, said = bring(store, tmp_path, tasks, "label-studio")
    assert found == (3, 0)
    assert said["a.png", "cy@x.org"].ranking == "sun > sky > sea"
    assert said["a.png", "cy@x.org"].seconds == 2.5
    assert said["deep/b.png", "12"].ranking == "sky > sun"
    assert said["deep/c.jpg", "12"].state == "skipped"


def test_label_studio_with_buckets(store, tmp_path):
    several = [ranked("a.png", "cy", {"minor": ["sea"], "_": ["sun"], "main": ["sky"], "wrong": []})]
    with pytest.raises(DataError, match=r"main, minor, wrong; say with --buckets"):
        bring(store, tmp_path, several, "label-studio")
    _, said = bring(store, tmp_path, several, "label-studio", buckets=["main", "minor"])
    assert said["a.png", "cy"].ranking == "sky > sea"
    tied = [ranked("deep/b.png", "cy", {"main": ["sky", "sea"], "minor": ["sun"], "_": []})]
    _, said = bring(store, tmp_path, tied, "label-studio", buckets=["main", "minor"])
    assert said["deep/b.png", "cy"].ranking == "sea = sky > sun"
    one = [ranked("deep/c.jpg", "cy", {"applies": ["sun", "sea"], "_": ["sky"]})]
    _, said = bring(store, tmp_path, one, "label-studio")
    assert said["deep/c.jpg", "cy"].ranking == "sun > sea"


def test_a_bucket_that_no_task_has_is_refused(store, tmp_path):
    tasks = [
        ranked("a.png", "cy", {"main": ["sky"], "minor": ["sea"], "_": ["sun"]}),
        ranked("deep/b.png", "cy", {"main": ["sea"], "_": ["sun", "sky"]}),  # an empty one need not be there
    ]
    with pytest.raises(DataError, match=r"export\.json: no task has a bucket 'minr'; there are main, minor$"):
        bring(store, tmp_path, tasks, "label-studio", buckets=["main", "minr"])
    with pytest.raises(DataError, match=r"no task has a bucket 'main'; there are none$"):
        bring(store, tmp_path, [ranked("a.png", "cy", ["sky"])], "label-studio", buckets=["main"])
    found, said = bring(store, tmp_path, tasks, "label-studio", buckets=["main", "minor"])
    assert found == (2, 0)
    assert [said[name, "cy"].ranking for name in ("a.png", "deep/b.png")] == ["sky > sea", "sea"]


def test_argilla_in_all_its_forms(store, tmp_path):
    ranks = [{"value": "sky", "rank": 2}, {"value": "sea", "rank": 1}, {"value": "sun", "rank": 2}]
    records = [
        {  # by person, with ranks: the HTTP interface, and the client before version 2
            "fields": {"image": "http://h/a.png"},
            "responses": [
                {"user_id": "cy", "status": "submitted", "values": {"order": {"value": ranks}}},
                {"user_id": "di", "status": "draft", "values": {"order": {"value": ranks}}},
                {"user_id": "ed", "status": "discarded", "values": {}},
            ],
        },
        {  # by question: the client of version 2
            "id": "deep/b.png",
            "fields": {"text": "no name"},
            "responses": {
                "order": [{"value": ["sun", "sea"], "user_id": "cy"}],
                "why": [{"value": "because", "user_id": "cy"}],
            },
        },
        {  # columns, as data sets keep them
            "fields": {"image": "c.jpg"},
            "responses": {"order": [{"value": {"value": ["sky", "sun"], "rank": [1, 1]}, "user_id": "cy"}]},
        },
    ]
    found, said = bring(store, tmp_path, {"items": records}, "argilla")
    assert found == (4, 0)
    assert said["a.png", "cy"].ranking == "sea > sky = sun"
    assert said["a.png", "ed"].state == "skipped"
    assert said["deep/b.png", "cy"].ranking == "sun > sea"
    assert said["deep/c.jpg", "cy"].ranking == "sky = sun"


def by_person(*values):
    """Records of Argilla with answers {question: value}, each of one person."""
    responses = [{"user_id": f"p{number}", "values": one} for number, one in enumerate(values)]
    return [{"fields": {"image": "a.png"}, "responses": responses}]


def test_the_question_of_argilla_is_one_that_ranks(store, tmp_path):
    sky, sun = {"value": [{"value": "sky", "rank": 1}]}, {"value": [{"value": "sun", "rank": 1}]}
    why = {"value": "because"}
    persons = by_person({"order": sky, "mood": sun, "why": why}, {"mood": sun})
    questions = [
        {
            "fields": {"image": "a.png"},
            "responses": {name: [{**one, "user_id": "p0"}]},
        }
        for name, one in [("order", sky), ("mood", sun), ("why", why)]
    ]
    for records in (persons, questions):
        for name in ("oder", "why"):
            with pytest.raises(DataError, match=rf"no ranking question '{name}'; there are mood, order$"):
                bring(store, tmp_path, records, "argilla", question=name)
        with pytest.raises(DataError, match="has the questions mood, order; say which with --question"):
            bring(store, tmp_path, records, "argilla")
    with pytest.raises(DataError, match="holds no answer to the ranking question 'order'"):
        bring(store, tmp_path, by_person({"why": why}), "argilla", question="order")
    found, said = bring(store, tmp_path, persons, "argilla", question="order")
    assert (found, said["a.png", "p0"].ranking) == ((1, 0), "sky")


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"annotations": [None]}, "annotations: None in the list; expected an object"),
        ({"annotations": "none"}, "annotations: 'none'; expected a list"),
        ({"lead_time": "long"}, "lead_time 'long'; expected seconds, 0 or more"),
        ({"lead_time": -1}, "lead_time -1; expected seconds, 0 or more"),
        ({"result": "none"}, "result: 'none'; expected a list"),
        ({"result": [None]}, "result: None in the list; expected an object"),
        ({"result": [{"type": "ranker", "value": None}]}, "expected a value with 'ranker'"),
        ({"value": {"main": None}}, "bucket 'main' holds None; expected a list of labels"),
        ({"value": {"main": "sky"}}, "bucket 'main' holds 'sky'; expected a list of labels"),
    ],
)
def test_odd_tasks_of_label_studio_are_named(store, tmp_path, change, what):
    odd = ranked("a.png", "cy", change.get("value", ["sky"]))
    (odd if "annotations" in change else odd["annotations"][0]).update(change)
    with pytest.raises(DataError) as error:
        bring(store, tmp_path, [ranked("a.png", "di", ["sky"]), odd], "label-studio")
    assert "row 1: " in str(error.value)
    assert what in str(error.value)


def test_nothing_is_no_answer_of_label_studio(store, tmp_path):
    note = {"type": "textarea", "value": {"text": [None, "hm"]}}
    tasks = [ranked("a.png", "cy", ["sky"], lead_time=None), ranked("a.png", "di", ["sky"], result=None)]
    tasks[0]["annotations"][0]["result"] += [note, {**note, "value": None}]
    tasks[0]["data"] = {"bad": "//[x", "page": {"url": None}, **tasks[0]["data"]}
    found, said = bring(store, tmp_path, tasks, "label-studio")
    assert found == (1, 0)
    assert (said["a.png", "cy"].seconds, said["a.png", "cy"].note) == (0.0, "hm")


@pytest.mark.parametrize(
    ("responses", "what"),
    [
        ("none", "responses: 'none'; expected a list"),
        ([None], "responses: None in the list; expected an object"),
        ({"order": "none"}, "responses to 'order': 'none'; expected a list"),
        ({"order": [None]}, "responses to 'order': None in the list; expected an object"),
        ([{"values": "none"}], "values 'none'; expected answers by question"),
        ([{"values": {"order": "none"}}], "'none' as answer to 'order'; expected one with 'value'"),
        (
            [{"values": {"order": {"value": [{"value": "sky", "rank": "first"}]}}}],
            "rank 'first' of 'sky'; expected a number",
        ),
        ({"order": [{"value": {"value": ["sky", "sun"], "rank": [1]}}]}, "expected as many ranks as values"),
        ({"order": [{"value": {"value": None, "rank": None}}]}, "expected as many ranks as values"),
    ],
)
def test_odd_records_of_argilla_are_named(store, tmp_path, responses, what):
    odd = {"fields": {"image": "a.png"}, "responses": responses}
    with pytest.raises(DataError) as error:
        bring(store, tmp_path, [*by_person({"order": {"value": ["sky"]}}), odd], "argilla")
    assert "row 1: " in str(error.value)
    assert what in str(error.value)


def test_nothing_is_no_answer_of_argilla(store, tmp_path):
    answer = {"value": ["sky"], "user_id": "cy"}
    records = by_person({"order": {"value": ["sky"]}}, {"order": None}) + [
        {"fields": {"image": "a.png"}, "responses": responses}
        for responses in ({"order": None}, None, {"order": [answer, {"value": None, "user_id": "di"}]})
    ]
    found, said = bring(store, tmp_path, records, "argilla")
    assert found == (2, 0)
    assert {name for _, name in said} == {"Ann", "Bob", "p0", "cy"}


def test_one_person_says_one_thing_of_an_item(store, tmp_path):
    before = store.answers()
    file = tmp_path / "given.csv"
    file.write_text(
        "image,ranker,ranking\na.png,Cy,sky > sea\ndeep/b.png,Cy,sky\nphotos/a.png,cy,sea > sky\n"
    )
    with pytest.raises(DataError) as error:
        import_answers(store, file, replace=True)
    assert "1 of 3 answers" in str(error.value)
    assert "row 2: 'cy' says 'sea > sky' of 'a.png', and 'sky > sea' in row 0" in str(error.value)
    assert store.answers() == before
    assert len(store.people()) == 2
    file.write_text("image,ranker,ranking,note\na.png,Cy,sky = sea,\na.png,cy,sea = sky,again\n")
    assert import_answers(store, file) == (1, 0)
    tasks = [ranked("a.png", "di", ["sky"]), ranked("a.png", "di", ["sky"], was_cancelled=True)]
    with pytest.raises(DataError, match=r"'di' says a skip of 'a\.png', and 'sky' in row 0"):
        bring(store, tmp_path, tasks, "label-studio")


def test_what_cannot_be_taken_is_named_and_nothing_is_taken(store, tmp_path):
    before = store.answers()
    tasks = [
        ranked("a.png", "cy", ["sky"]),
        ranked("lost.png", "cy", ["sky"]),
        ranked("a.png", "cy", ["fog"]),
        ranked("a.png", None, ["sky"]),
    ]
    with pytest.raises(DataError, match=r"3 of 4 (.|\n)*lost\.png(.|\n)*fog(.|\n)*--person"):
        bring(store, tmp_path, tasks, "label-studio")
    for text, what in [("{", "is not JSON"), ("[1]", "expected a list of tasks"), ("[]", "holds no answer")]:
        (tmp_path / "bad.json").write_text(text)
        with pytest.raises(DataError, match=what):
            import_answers(store, tmp_path / "bad.json", "label-studio")
    (tmp_path / "bad.csv").write_text("image,ranking\na.png,sky >\n")
    with pytest.raises(DataError, match="row 0"):
        import_answers(store, tmp_path / "bad.csv", person="cy")
    assert store.answers() == before


def naive(one, other):
    """Comparisons that two rankers disagree on, one pair after the other."""
    apart = made = 0.0
    heights = [[2 * rank for rank in ranks] + [1] for ranks in (one, other)]
    for i, j in combinations(range(len(one) + 1), 2):
        if min(heights[0][i], heights[0][j], heights[1][i], heights[1][j]) < 0:
            continue
        signs = [np.sign(height[i] - height[j]) for height in heights]
        made += any(signs)
        apart += abs(signs[0] - signs[1]) / 2
    return apart / made if made else np.nan


def test_disagreement_is_that_of_a_slow_loop():
    random = np.random.default_rng(3)
    ranks = random.integers(-1, 4, size=(60, 3, 5))
    ranks[:10, 1] = -1
    wanted = [
        np.nanmean([naive(*pair) for pair in combinations(row.tolist(), 2)] + [np.nan])
        if any(not np.isnan(naive(*pair)) for pair in combinations(row.tolist(), 2))
        else np.nan
        for row in ranks
    ]
    np.testing.assert_allclose(disagreement(ranks), wanted)
    assert (
        disagreement([[[3, 2, 1], [1, 2, 3]]])[0] == 0.5
    )  # of 6 comparisons, 3 with the virtual label agree


def test_the_overview_counts_and_names_the_disputed(store):
    seen = overview(store)
    assert (seen.items, seen.ranked) == (3, 2)
    ann, bob = seen.people
    assert (ann["ranked"], ann["skipped"], ann["seconds"]) == (2, 1, 5.0)
    assert (bob["ranked"], bob["tau_b"]) == (1, pytest.approx(seen.agreement["pairwise_tau_b"]))
    assert ann["reliability"] * bob["reliability"] == pytest.approx(
        1
    )  # one shared item: nobody knows who is right
    assert seen.disputed == [(1, pytest.approx(naive([1, 2, 1], [2, 1, 0])))]


def test_the_overview_shows_who_is_careless(tmp_path):
    labels = ["a", "b", "c", "d"]
    random = np.random.default_rng(0)
    with Store(tmp_path / "answers", create=True) as answers:
        answers.bring(Found("text", "poems", {str(item): "words" for item in range(20)}), labels)
        for item in range(1, 21):
            order = [[labels[place]] for place in random.permutation(4)[:3]]
            wrong = [[labels[place]] for place in random.permutation(4)[:2]]
            for name, said in [("Ann", order), ("Bob", wrong), ("Cas", order)]:
                answers.answer(item, answers.person(name).id, said, token=f"{name} {item}")
        newcomer = answers.person("Dan")
        people = {person["name"]: person for person in overview(answers).people}
    assert newcomer.name == "Dan"
    assert people["Ann"]["reliability"] == pytest.approx(people["Cas"]["reliability"])
    assert people["Bob"]["reliability"] < 0.5 * people["Ann"]["reliability"]
    assert people["Dan"]["reliability"] is None


def test_uncertainty_is_the_sum_of_entropies():
    raw = Significances(np.array([[0.5, 0.4, -9.0], [9.0, 5.0, -9.0]]), np.ones((2, 3)))
    from scipy.stats import entropy, norm

    chances = norm.cdf(raw.mu)
    prediction = Prediction(raw.mu, chances, LABELS, raw, "gmlr")
    wanted = []
    for row, mu in zip(chances, raw.mu):
        bits = sum(entropy([p, 1 - p], base=2) for p in row)
        for i, j in combinations(range(3), 2):
            above = norm.cdf((mu[i] - mu[j]) / np.sqrt(2))
            bits += row[i] * row[j] * entropy([above, 1 - above], base=2)
        wanted.append(bits)
    np.testing.assert_allclose(uncertainty(prediction), wanted, atol=1e-6)


def test_thumbnails_are_made_once_and_anew_when_the_picture_changes(photos, tmp_path):
    cache = tmp_path / "cache"
    first = jpeg_of(photos / "a.png", cache, "small")
    (kept,) = cache.rglob("*.jpg")
    assert kept.read_bytes() == first
    kept.write_bytes(b"from the cache")
    assert jpeg_of(photos / "a.png", cache, "small") == b"from the cache"
    Image.new("RGB", (50, 50)).save(photos / "a.png")
    assert jpeg_of(photos / "a.png", cache, "small") not in (first, b"from the cache")
    (photos / "a.png").write_bytes(b"no picture")
    with pytest.raises(DataError, match=r"a\.png"):
        jpeg_of(photos / "a.png", cache, "small")


def test_thumbnails_need_no_cache(photos, tmp_path):
    (tmp_path / "cache").write_text("a file where a folder should be")
    with Image.open(io.BytesIO(jpeg_of(photos / "a.png", tmp_path / "cache", "view"))) as made:
        assert (made.format, made.size) == ("JPEG", (30, 20))
    for bad in ("a\0b.png", "x" * 300):
        with pytest.raises(DataError, match="expected a picture"):
            jpeg_of(photos / bad, tmp_path / "cache", "view")
