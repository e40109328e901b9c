"""The picture of a trace, parsed as XML: the positions of the elements agree with the trace."""

import random
import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from checker.job import DiagramEvent
from checker.traces import Trace, Truth
from checker.traces.summary import messages_of
from checker.traces.svg import arrows, picture, to_svg
from checker.traces.svg.arrows import CLEAR, Boxes, Routes, crosses
from checker.traces.svg.layout import SIGNS
from tests.support.traces import LONG, SHIPPED, everything, made, repeating, send, shipped

SVG = "{http://www.w3.org/2000/svg}"
EVERY = ["everything", "repeating", *SHIPPED]


def trace_called(name: str) -> Trace:
    return {"everything": everything, "repeating": repeating}.get(name, lambda: shipped(name))()


def parsed(trace: Trace, **how: object) -> ET.Element:
    return ET.fromstring(picture(trace, **how))


def classed(root: ET.Element, name: str) -> list[ET.Element]:
    return [each for each in root.iter() if name in (each.get("class") or "").split()]


def whole(element: ET.Element) -> str:
    return "".join(element.itertext())


def rows(root: ET.Element) -> list[tuple[float, float]]:
    """Return the top and the bottom of each row."""
    found = [(float(each.get("y", 0)), float(each.get("height", 0))) for each in classed(root, "row")]
    return [(top, top + height) for top, height in found]


def lives(root: ET.Element, trace: Trace) -> dict[str, float]:
    """Return the distance of each lane's line from the left; lines are drawn in the order of lanes."""
    at = list(dict.fromkeys(float(each.get("x1", 0)) for each in classed(root, "life")))
    named = list(dict.fromkeys(whole(each.find(f"{SVG}title")) for each in classed(root, "lane")))
    assert set(trace.lanes) <= set(named)
    return dict(zip(named, at, strict=True))


def corners(root: ET.Element) -> dict[int, list[tuple[float, float]]]:
    """Return the corners of the arrow of each message, with both ends."""
    found = {}
    for each in classed(root, "message"):
        (shaft,) = classed(each, "shaft")
        if shaft.tag == f"{SVG}line":
            ends = [(shaft.get(f"x{end}", ""), shaft.get(f"y{end}", "")) for end in (1, 2)]
        else:
            ends = [tuple(corner.split(",")) for corner in shaft.get("points", "").split()]
        found[int(each.get("data-message", 0))] = [(float(x), float(y)) for x, y in ends]
    return found


def shafts(root: ET.Element) -> dict[int, tuple[float, float, float, float]]:
    return {number: (*path[0], *path[-1]) for number, path in corners(root).items()}


def boxes(root: ET.Element) -> list[tuple[float, float, float, float]]:
    """Return the left, the top, the right and the bottom of each box of a lane."""
    found = [each.find(f"{SVG}rect") for each in classed(root, "block")]
    edges = [tuple(float(each.get(name, 0)) for name in ("x", "y", "width", "height")) for each in found]
    return [(x, y, x + width, y + height) for x, y, width, height in edges]


@pytest.mark.parametrize("name", EVERY)
def test_steps_stand_below_each_other_each_with_its_anchor(name):
    trace = trace_called(name)
    root = parsed(trace)
    assert [each.get("id") for each in classed(root, "row")] == [f"step-{n}" for n in range(trace.depth + 1)]
    assert [each.get("data-step") for each in classed(root, "step")] == [str(n) for n in range(trace.depth + 1)]
    found = rows(root)
    assert all(abs(one[1] - next_one[0]) < 0.2 for one, next_one in pairwise(found))
    ids = [each.get("id") for each in root.iter() if each.get("id") is not None]
    assert len(ids) == len(set(ids))


@pytest.mark.parametrize("name", EVERY)
def test_a_message_goes_from_the_step_of_its_sending_to_that_of_its_arrival(name):
    trace = trace_called(name)
    root = parsed(trace)
    at, places, lines = lives(root, trace), rows(root), shafts(root)
    messages = {message.number: message for message in messages_of(trace)}
    assert set(lines) == set(messages)
    for number, (x1, y1, x2, y2) in lines.items():
        message = messages[number]
        assert x1 == at[message.sender]
        if message.sent is not None:
            assert places[message.sent][0] <= y1 <= places[message.sent][1]
        if message.fate.value == "arrives":
            assert x2 == at[message.receiver]
        else:
            assert min(x1, at[message.receiver]) < x2 < max(x1, at[message.receiver])
        if message.ended is not None:
            assert places[message.ended][0] <= y2 <= places[message.ended][1]
            assert y1 < y2


@pytest.mark.parametrize("name", EVERY)
def test_no_box_hides_an_arrow_and_no_arrow_crosses_a_box(name):
    root = parsed(trace_called(name))
    order = [each.get("class", "") for each in root]
    first = next((place for place, each in enumerate(order) if each.startswith("message")), len(order))
    assert all(each != "step" for each in order[first:])
    for number, path in corners(root).items():
        crossed = [box for box in boxes(root) for one, other in pairwise(path) if crosses(one, other, box)]
        assert not crossed, f"m{number}"


def test_an_arrow_turns_round_a_box_and_two_arrows_have_different_tracks():
    routes = Routes([(30, 20, 90, 60)], [0, 100])
    one, other = routes.route((0, 0), (100, 80)), routes.route((0, 0), (100, 100))
    assert len(one) == len(other) == 5
    assert one[0] == other[0] == (0, 0) and (one[-1], other[-1]) == ((100, 80), (100, 100))
    assert one[1][0] > 0 and one[2][0] == one[3][0] and abs(one[2][0] - other[2][0]) >= 4
    assert all(90 < path[2][0] < 100 for path in (one,))
    assert routes.route((0, 0), (100, 10)) == [(0, 0), (100, 10)]


def test_an_arrow_without_a_free_track_is_straight():
    assert Routes([(0, 20, 100, 60)], [0, 100]).route((0, 0), (100, 80)) == [(0, 0), (100, 80)]


@pytest.mark.parametrize("seed", range(8))
def test_boxes_are_crossed_exactly_where_one_of_them_is(seed):
    """Coordinates are whole numbers, so that parts often touch the edge of a box."""
    chance = random.Random(seed)
    corners = [sorted(chance.choices(range(60), k=2)) + sorted(chance.choices(range(60), k=2)) for _ in range(12)]
    boxes = [(left, top, right, bottom) for left, right, top, bottom in corners]
    together = Boxes(boxes)
    for _ in range(200):
        one, other = chance.choices(range(60), k=2), chance.choices(range(60), k=2)
        assert together.cross(one, other) is any(crosses(one, other, box, CLEAR) for box in boxes)


def test_an_arrow_is_compared_only_with_the_boxes_at_its_height(monkeypatch):
    compared = []
    monkeypatch.setattr(arrows, "crosses", lambda _one, _other, box, _clear: compared.append(box) or False)
    boxes = [(10, 100 * row, 90, 100 * row + 50) for row in range(1000)]
    Routes(boxes, [0, 100]).route((0, 50_060), (100, 50_120))
    assert compared == [(10, 50_100, 90, 50_150)]


def test_a_message_that_is_lost_ends_in_a_cross_where_it_is_lost():
    root = parsed(everything())
    (lost,) = classed(root, "lost")[:1]
    assert (lost.get("id"), lost.get("data-sent"), lost.get("data-ended")) == ("m1", "1", "2")
    assert [each.get("class") for each in lost.iter() if each.get("class") == "cross"] == ["cross"]
    assert not [each for each in classed(root, "arrives") for part in each.iter() if part.get("class") == "cross"]


def test_words_on_a_message_have_its_number_and_all_of_its_text_to_point_at():
    root = parsed(everything())
    (label,) = [each for each in classed(root, "label") if [whole(name) for name in each.iter(f"{SVG}tspan")] == ["m2"]]
    assert LONG in whole(label.find(f"{SVG}title"))
    shown = whole(label).removeprefix(whole(label.find(f"{SVG}title")))
    assert shown.startswith("m2 a vote") and shown.endswith("…") and len(shown) < len(LONG)


def test_the_line_of_a_lane_is_broken_between_its_crash_and_its_start():
    trace = everything()
    root = parsed(trace)
    at, places = lives(root, trace), rows(root)
    down = [each for each in classed(root, "life") if "down" in (each.get("class") or "")]
    assert [float(each.get("x1", 0)) for each in down] == [at["b"]]
    (top, bottom) = (float(down[0].get("y1", 0)), float(down[0].get("y2", 0)))
    assert places[4][0] < top < places[4][1] and places[6][0] < bottom < places[6][1]


def test_crashes_starts_decisions_and_notes_are_boxes_beside_their_lanes():
    root = parsed(everything())
    shown = [
        (each.get("class"), each.get("data-lane"), whole(each.find(f"{SVG}text")))
        for each in classed(root, "block")
        if "changes" not in (each.get("class") or "")
    ]
    assert shown == [
        ("block crash", "b", "stops"),
        ("block start", "b", "starts with zoo-5.cfg"),
        ("block decide", "c", "LEADING"),
        ("block note", "a", "is told"),
        ("block marked", "c", "holds"),
    ]


def test_links_that_break_and_heal_join_the_lanes_and_name_the_sides():
    trace = everything()
    root = parsed(trace)
    at = lives(root, trace)
    told = {}
    for each in classed(root, "band"):
        ends = [float(part.get("x", 0)) + 4 for part in each.findall(f"{SVG}rect")]
        told[each.get("class")] = ends, "".join(map(whole, each.findall(f"{SVG}text")))
    assert told == {
        "band cut": ([at["a"], at["b"], at["c"]], "cut: a | b, c"),
        "band heal": ([at["a"], at["b"], at["c"]], "whole again: a | b, c"),
        "band between": ([at["a"], at["b"]], ""),
    }


def test_beside_a_lane_stands_only_what_a_step_changed():
    root = parsed(everything())
    changes = {}
    for step in classed(root, "step"):
        for block in step.iter(f"{SVG}g"):
            if block.get("class") == "block changes":
                lines = [" ".join(whole(line).split()) for line in block.findall(f"{SVG}text")]
                changes[int(step.get("data-step", 0)), block.get("data-lane")] = lines
    first = ["state up", "vote {leader: 1, epoch: 1}"]
    assert changes == {
        **{(0, lane): first for lane in "abc"},
        (3, "c"): ["vote leader: 3"],
        (4, "b"): ["state down", "no vote"],
        (6, "b"): first,
        (7, "c"): ["state LEADING", "no vote"],
    }


def test_the_truth_of_each_property_stands_in_each_row_in_a_shape_of_its_own():
    trace = everything()
    root = parsed(trace)
    places = rows(root)
    signs = [each for step in classed(root, "step") for each in classed(step, "truth")]
    assert len(signs) == 2 * len(trace.steps)
    for place, sign in enumerate(signs):
        number, name = place // 2, "PQ"[place % 2]
        y = float(sign.get("transform", "").split()[1].rstrip(")"))
        assert places[number][0] < y < places[number][1]
        truth = trace.steps[number].truth[name]
        assert sign.get("class") == f"truth {truth.value.replace(' ', '-')}"
        assert whole(sign.find(f"{SVG}title")).startswith(f"{name}: ")
    shapes = {truth: SIGNS[truth] for truth in Truth if truth not in (Truth.REACHED, Truth.OPEN)}
    assert len(set(shapes.values())) == len(shapes)


def test_steps_that_repeat_for_ever_stand_in_a_bracket_and_others_in_none():
    root = parsed(repeating())
    (loop,) = classed(root, "loop")
    path = loop.findall(f"{SVG}path")[0].get("d", "")
    low, top = (float(each) for each in re.match(r"M[\d.]+ ([\d.]+)H[\d.]+V([\d.]+)H", path).groups())
    places = rows(root)
    assert places[3][0] < top < places[3][1] and places[4][0] < low < places[4][1]
    assert not classed(parsed(everything()), "loop")
    assert not classed(parsed(shipped("a recipe that stays for ever")), "loop")


@pytest.mark.parametrize("name", EVERY)
def test_the_finding_is_above_the_picture_and_its_bounds_are_a_caption_below_it(name):
    trace = trace_called(name)
    root = parsed(trace)
    assert whole(classed(root, "headline")[0].find(f"{SVG}title")) == trace.headline
    top, low = rows(root)[0][0], rows(root)[-1][1]
    told = " ".join(whole(each.find(f"{SVG}title")) for kind in ("finding", "about") for each in classed(root, kind))
    assert trace.clause in told and trace.grain in told and all(bound in told for bound in trace.bounds)
    above = [each for kind in ("headline", "claim", "finding") for each in classed(root, kind)]
    assert all(float(each.get("y", 0)) < top for each in above)
    below = [float(each.get("y", 0)) for each in classed(root, "about")]
    assert below and all(low < y < float(root.get("height", 0)) for y in below)
    bare = parsed(trace, heading=False)
    assert not classed(bare, "headline") and not classed(bare, "about") and rows(bare)[0][0] <= top


@pytest.mark.parametrize("name", EVERY)
def test_the_document_stands_alone_and_is_the_same_each_time(name):
    trace = trace_called(name)
    document = to_svg(trace)
    assert document == to_svg(trace)
    assert document.startswith("<?xml") and document.endswith("</svg>\n")
    root = ET.fromstring(document.encode())
    links = [each.get("href") for each in root.iter() if each.get("href") is not None]
    assert all(link.startswith("#step-") for link in links)
    assert not re.search(r"url\(|@import|@font-face", document)


def test_a_page_with_several_pictures_has_no_id_twice_and_marks_the_step_it_wants():
    one, two = (parsed(everything(), prefix=prefix) for prefix in ("one-", "two-"))
    ids = [{each.get("id") for each in root.iter() if each.get("id")} for root in (one, two)]
    assert not ids[0] & ids[1]
    assert {each.get("href", "")[1:] for each in one.iter(f"{SVG}a")} <= ids[0]
    chosen = classed(parsed(everything(), selected=3), "selected")
    assert [each.get("data-step") for each in chosen] == ["3"]
    assert not classed(one, "selected")


def test_a_page_that_brings_the_style_itself_gets_a_picture_without():
    assert parsed(everything()).find(f"{SVG}style") is not None
    assert parsed(everything(), styled=False).find(f"{SVG}style") is None


def test_a_picture_is_as_wide_as_its_lanes_want():
    widths = [float(parsed(trace_called(name)).get("width", 0)) for name in ("repeating", "message by message")]
    assert widths[0] < 700
    assert 900 < widths[1] < 1100


def test_words_of_messages_that_end_in_one_gap_stand_below_each_other():
    """The words of two opposite messages between two lanes in one step are in the same gap."""
    lanes = {"a": {"x": 1}, "b": {"x": 1}}
    crossing = [DiagramEvent("deliver", "b", "vote 1", "a", 1), DiagramEvent("deliver", "a", "vote 1", "b", 2)]
    asked = [send("a", "b", 1), send("b", "a", 2)]
    steps = [("at first", lanes, []), ("both send", lanes, asked), ("both hear", lanes, crossing)]
    ends = [y2 for _, _, _, y2 in shafts(parsed(made(steps, [{}] * 3))).values()]
    assert abs(ends[0] - ends[1]) >= 10


def test_links_that_are_no_two_sides_are_named_one_by_one():
    lanes = {lane: {"x": 1} for lane in "abcd"}
    cuts = [DiagramEvent("cut", "a", "cut", "b"), DiagramEvent("cut", "c", "cut", "d")]
    root = parsed(made([("at first", lanes, []), ("two links break", lanes, cuts)], [{}] * 2))
    (band,) = classed(root, "band")
    assert "".join(map(whole, band.findall(f"{SVG}text"))).startswith("cut: a - b, c - d")
    assert not classed(band, "second")
