"""The OpenAPI document of `gmlr annotate` and what it answers: generated requests, and odd ones by hand."""

import asyncio
import json

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, seed, settings
from hypothesis import given as hypothesis_given
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    negative_data_rejection,
    response_schema_conformance,
    status_code_conformance,
)

from gaussianmlr.apps.annotate import Found, Store
from gaussianmlr.apps.annotate.app import make_annotate_app

pytestmark = pytest.mark.slow

CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
    negative_data_rejection,
]
LABELS = ("sea", "sky", "sun")
HERE = {"host": "127.0.0.1"}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    with Store(tmp_path_factory.mktemp("schema") / "store", create=True) as made:
        made.bring(Found("text", "poems", {f"p{number}": f"poem {number}" for number in range(3)}), LABELS)
        for name in ("Ann", "Bob"):
            made.answer(1, made.person(name).id, [["sea"], ["sky"]], token=f"token of {name}")
        yield made


@pytest.fixture(scope="module")
def app(store):
    return make_annotate_app(store)


@pytest.fixture(scope="module")
def described(app):
    return schemathesis.openapi.from_asgi("/openapi.json", app, headers=HERE)


OPERATIONS = [
    ("GET", "/api/project"),
    ("POST", "/api/people"),
    ("GET", "/api/next"),
    ("GET", "/api/items/{number}"),
    ("POST", "/api/items/{number}/answers"),
    ("POST", "/api/undo"),
    ("GET", "/api/items/{number}/picture"),
    ("GET", "/api/items"),
    ("GET", "/api/overview"),
    ("GET", "/api/export.csv"),
    ("GET", "/health"),
    ("GET", "/ready"),
]


def test_all_operations_are_tried(app):
    paths = app.openapi()["paths"].items()
    assert {(method.upper(), path) for path, methods in paths for method in methods} == set(OPERATIONS)


@pytest.mark.parametrize("mode", GenerationMode)
@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_generated_requests_are_answered_as_described(described, method, path, mode):
    operation = described[path][method]
    if mode is GenerationMode.NEGATIVE and not (
        operation.body or operation.query or operation.path_parameters
    ):
        pytest.skip("it takes nothing that could be wrong")

    @seed(3)
    @settings(max_examples=60, database=None, deadline=None, suppress_health_check=list(HealthCheck))
    @hypothesis_given(operation.as_strategy(generation_mode=mode))
    def check(case):
        case.call_and_validate(headers=HERE, checks=CHECKS)

    check()


def ask(app, method, path, **more):
    async def send():
        transport = httpx.ASGITransport(app, raise_app_exceptions=False)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            return await client.request(method, path, **more)

    return asyncio.run(send())


def given(**more):
    return json.dumps({"person": 1, "token": "long-enough", "order": [["sea"]], **more})


@pytest.mark.parametrize(
    "body",
    [
        given(person=2**63),
        given(person=10**400),
        given(person=True),
        given(person="1"),
        given(token="half \ud800 half"),
        given(note="half \udfff half"),
        given(note="a\0b"),
        given(note="x" * 4_001),
        given(order=[["\ud800"]]),
        given(order=[["sea" * 100_000]]),
        given(order=[[]] * 1_000),
        given(order=[[f"label {number}"] for number in range(9_000)]),
        given(seconds=1e308),
        given(seconds=1).replace("1.0", "1").replace('"seconds": 1', '"seconds": NaN'),
        given(seconds=1).replace('"seconds": 1', '"seconds": 1e999'),
        given().replace('"person": 1', '"person": ' + "9" * 5_000),
        '{"person": 1, "order": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"person": 1',
        "\x00",
        "[]",
    ],
    ids=lambda body: body[:60].replace("\x00", "NUL"),
)
def test_odd_answers_are_refused_and_leave_nothing(app, store, body):
    before = store.revision()
    headers = {"content-type": "application/json"}
    found = ask(app, "POST", "/api/items/2/answers", content=body, headers=headers)
    assert found.status_code in (400, 422), found.text
    assert list(found.json()) == ["error"]
    assert len(found.text) < 2_100
    assert store.revision() == before


@pytest.mark.parametrize(
    "path",
    [
        f"/api/items/{2**63}?person=1",
        f"/api/items/{10**30}/picture",
        f"/api/items/1?person={2**63}",
        f"/api/items/1?person={'9' * 5_000}",
        f"/api/next?person={-(2**63) - 1}",
        f"/api/items?person=1&first={2**63}",
        "/api/items/%00?person=1",
        "/api/items/%ED%A0%80?person=1",
        "/api/next?person=%ED%A0%80",
        f"/api/items/{'x' * 3_000}?person=1",
        "/api/export.csv?aggregate=%00",
    ],
    ids=lambda path: path[:40],
)
def test_odd_paths_are_refused(app, path):
    found = ask(app, "GET", path)
    assert found.status_code in (400, 422), found.text
    assert list(found.json()) == ["error"]


@pytest.mark.parametrize("name", ["a\0b", "half \ud800", "x" * 81, "x" * 401, "", " \t", "\u202e\u200b"])
def test_odd_names_are_refused(app, store, name):
    body, headers = json.dumps({"name": name}), {"content-type": "application/json"}
    found = ask(app, "POST", "/api/people", content=body, headers=headers)
    assert found.status_code in (400, 422), found.text
    assert list(found.json()) == ["error"]


def test_pictures_and_manifests_are_not_described_as_json(app):
    for path, kind in (("/api/items/{number}/picture", "image/jpeg"), ("/api/export.csv", "text/csv")):
        assert list(app.openapi()["paths"][path]["get"]["responses"]["200"]["content"]) == [kind]


def test_every_route_tells_its_statuses(app):
    for path, methods in app.openapi()["paths"].items():
        for method, route in methods.items():
            wanted = {"200", "400", "401", "403", "408", "413", "421", "422", "503"}
            wanted |= {"507"} if path.startswith("/api/") else set()
            assert set(route["responses"]) == wanted, (method, path)
